"""Follows a topology at run time: its file, and its switches' tree if they can be read."""

from pathlib import Path

from xco.errors import TopologyError
from xco.topology.discovery import Run, read_tree, run
from xco.topology.file import SnmpSource, load_file
from xco.topology.graph import Topology

Stamp = tuple[int, int, int]


class TopologyWatch:
    """Keeps the last valid topology, and reports changes.

    `look` asks each switch again, but parses the file only when it has changed.
    """

    def __init__(self, path: Path, run: Run = run) -> None:
        """Read it for the first time.

        Raises:
            TopologyError: as `look`.
        """
        self._path, self._run = path, run
        self._stamp = self._stamped()
        self._file = load_file(path)
        self.topology = read_tree(self._file, str(path), run)

    @property
    def asks_agents(self) -> bool:
        """Whether switches are read by SNMP, which loads them more than reading a bridge does."""
        return any(isinstance(source, SnmpSource) for source in self._file.sources)

    def look(self) -> Topology | None:
        """Read it again; return it if it has changed. An error leaves the last one in force.

        Raises:
            TopologyError: the file is wrong now.
            TreeError: a switch cannot be read, or its tree is changing or cannot be coordinated.
        """
        stamp = self._stamped()
        loaded = self._file if stamp == self._stamp else load_file(self._path)
        found = read_tree(loaded, str(self._path), self._run)
        self._stamp, self._file = stamp, loaded
        if found == self.topology:
            return None
        self.topology = found
        return found

    def _stamped(self) -> Stamp:
        try:
            status = self._path.stat()
        except OSError as error:
            problem = error.strerror or "cannot be read"
            raise TopologyError(str(self._path), "", problem, "put it back") from error
        return status.st_mtime_ns, status.st_size, status.st_ino


def renumbered(before: Topology, after: Topology) -> tuple[int | None, ...]:
    """Return each host's new number by its old one; None for a removed host.

    Hosts are identified by name: their VMs may have moved.
    """
    return tuple(after.host_index(host.name) for host in before.hosts)
