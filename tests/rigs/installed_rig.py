"""A copy of this machine's system to install packages into, with a network of its own.

What is written lies in memory, over the real files; it goes with the processes of the copy.
"""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.waiting import PATIENCE_S

MOUNTED = """
mount -t tmpfs none /mnt
mkdir /mnt/up /mnt/work /mnt/system
mount -t overlay -o lowerdir=/,upperdir=/mnt/up,workdir=/mnt/work none /mnt/system
mount -t proc proc /mnt/system/proc
mount -t sysfs sysfs /mnt/system/sys
mount --rbind /dev /mnt/system/dev
mount -t tmpfs none /mnt/system/run
ip link set lo up
echo ready
exec cat
"""
ENVIRONMENT = (
    "env",
    "-i",
    "HOME=/root",
    "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL=C.UTF-8",
    "DEBIAN_FRONTEND=noninteractive",
)


class System:
    """The copy, until it is ended."""

    def __init__(self) -> None:
        """Make it.

        Raises:
            OSError: this kernel or these rights do not allow it.
        """
        words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
        self._first = subprocess.Popen(
            [*words, "sh", "-euc", MOUNTED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._first.stdout
        if self._first.stdout.readline() != "ready\n":
            raise OSError(f"no copy of this system: {self._first.communicate()[1].strip()}")
        # unshare(1) stays outside of the namespaces that it makes for its child.
        children = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children").read_text()
        self._inside = ("nsenter", "-t", children.split()[0], "-m", "-n", "-p")

    def end(self) -> None:
        """End all of its processes, and with them the copy."""
        self._first.communicate()

    def words(self, *words: str) -> Sequence[str]:
        """Return what runs a command inside."""
        return (*self._inside, "chroot", "/mnt/system", *ENVIRONMENT, *words)

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command inside to its end."""
        return subprocess.run(self.words(*words), capture_output=True, text=True, check=False)

    def said(self, *words: str) -> str:
        """Return what a command prints that must succeed."""
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def write(self, path: str, content: bytes) -> None:
        """Write a file inside."""
        command = self.words("tee", path)
        subprocess.run(command, input=content, stdout=subprocess.DEVNULL, check=True)

    def install(self, *packages: Path) -> None:
        """Install packages in one go, as `apt install` does once it has all of them."""
        for package in packages:
            self.write(f"/root/{package.name}", package.read_bytes())
        names = [f"/root/{package.name}" for package in packages]
        self.said("dpkg", "--no-triggers", "--force-unsafe-io", "--install", *names)

    @contextmanager
    def running(self, name: str, *words: str) -> Iterator[None]:
        """Have a command running inside; it must end well when it is told to."""
        told = f'echo $$ >/run/{name}.pid; exec "$@"'
        outside = self.words("sh", "-euc", told, "sh", *words)
        process = subprocess.Popen(outside, stderr=subprocess.PIPE, text=True)
        try:
            yield
        finally:
            self.run("sh", "-euc", f"kill $(cat /run/{name}.pid); rm /run/{name}.pid")
            said = process.communicate(timeout=PATIENCE_S)[1]
        assert process.returncode == 0, said

    def there(self, *places: str) -> list[str]:
        """Return which of these places exist."""
        return [place for place in places if self.run("test", "-e", place).returncode == 0]
