"""Follows a topology at run time: its file, and the tree of its switches where they can be read."""

from pathlib import Path

from xco.errors import TopologyError
from xco.topology.discovery import Run, read_tree, run
from xco.topology.file import SnmpSource, load_file
from xco.topology.graph import Topology

Stamp = tuple[int, int, int]


class TopologyWatch:
    """Keeps the last topology that was right, and says when there is another.

    `look` asks each switch anew, but parses the file only when it is another one.
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
        """Whether switches are read by SNMP, which costs them more than a bridge is asked."""
        return any(isinstance(source, SnmpSource) for source in self._file.sources)

    def look(self) -> Topology | None:
        """Read it anew; return it if it has changed. An error leaves the last one in force.

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
    """Return by each host's number before its number after; None for one that is gone.

    A host is the same if its name is: its VMs may have moved.
    """
    return tuple(after.host_index(host.name) for host in before.hosts)
