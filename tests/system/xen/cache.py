"""A cache of directories that are whole or absent, each named after all that went into it."""

import fcntl
import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

Say = Callable[[str], None]


class Cache:
    """Parts of an image below one directory; an unchanged part is not built again."""

    def __init__(self, folder: Path, say: Say) -> None:
        self.folder, self.say = folder, say
        folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs away, and remove what an interrupted one left half built."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for remains in self.folder.glob(".*-partial-*"):
                shutil.rmtree(remains)
            yield

    def part(self, name: str, inputs: Sequence[str | bytes], build: Callable[[Path], None]) -> Path:
        """Return the directory of a part, built from these inputs if there is none."""
        digest = hashlib.sha256()
        for value in inputs:
            data = value.encode() if isinstance(value, str) else value
            digest.update(b"%d:" % len(data) + data)
        part = self.folder / f"{name}-{digest.hexdigest()[:12]}"
        if not part.exists():
            self._build(part, name, build)
        return part

    def _build(self, part: Path, name: str, build: Callable[[Path], None]) -> None:
        start = time.monotonic()
        self.say(f"building {name}")
        scratch = tempfile.mkdtemp(prefix=f".{name}-partial-", dir=self.folder)
        made = Path(scratch)
        build(made)
        made.chmod(0o755)
        for old in self.folder.glob(f"{name}-*"):
            shutil.rmtree(old)
        made.rename(part)
        self.say(f"built {name} in {time.monotonic() - start:.0f} s")
