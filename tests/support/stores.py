"""Files of the policer's store with their tables already made, which takes Alembic long."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from policer.store import open_store


def with_tables(path: Path) -> str:
    """Return the URL of a file as open_store makes it; a file that is there stays as it is."""
    if not path.exists():
        path.write_bytes(_empty())
        path.chmod(0o600)
    return f"sqlite:///{path}"


@cache
def _empty() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policer.db"
        open_store(f"sqlite:///{path}").close()
        return path.read_bytes()
