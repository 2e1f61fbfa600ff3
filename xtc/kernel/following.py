"""A router's interfaces by index, since a tenant may rename them."""

import errno
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from xtc.kernel.rtlink import Link, Links, open_links

_TRIES: Final = 3
_RENAMED = (errno.ENODEV, errno.ENOENT, errno.EINVAL)
_Result = TypeVar("_Result")


class Following:
    """Tracks interfaces by their indexes from the first call on.

    All methods except `know` work in the calling thread's network namespace, which must always be
    the same.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(dict.fromkeys(names))
        self._seen: dict[str, Link] = {}
        """The last state of each interface, by its configured name."""
        self._known: dict[str, int] = {}

    def know(self, indexes: Mapping[str, int]) -> None:
        """Take indexes from the journal, 0 where it has none; known ones are kept."""
        self._known.update({name: index for name, index in indexes.items() if index})

    def present(self, names: Iterable[str] | None = None) -> dict[str, Link]:
        """Return the existing ones, by their configured names.

        An interface created again under its configured name replaces the old one.
        """
        with open_links() as links:
            found = {
                name: link
                for name in (self._names if names is None else names)
                if (link := self._find(links, name)) is not None
            }
        self._seen.update(found)
        return found

    def current(self) -> dict[str, Link]:
        """Return the existing ones, by their configured names.

        Raises:
            OSError: ENODEV, none exists, or one has never existed.
        """
        found = self.present()
        missing = [name for name in self._names if name not in found]
        if missing and (not found or any(name not in self._seen for name in missing)):
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), ", ".join(missing))
        return found

    def _find(self, links: Links, name: str) -> Link | None:
        seen = self._seen.get(name)
        link = links.find(self._known.get(name, 0) if seen is None else seen.index)
        if link is not None and (seen is None or link.kind == seen.kind):
            return link
        link = links.find(name)
        if link is None or link.index in {other.index for other in self._seen.values()}:
            return None
        return link if seen is None or link.kind == seen.kind else None


def steadily(
    find: Callable[[], dict[str, Link]], work: Callable[[dict[str, Link]], _Result]
) -> _Result:
    """Work on interfaces by their current names; repeat if they were renamed in between.

    Raises:
        OSError: EAGAIN, they keep being renamed; else as `find` and `work`.
    """
    for _ in range(_TRIES):
        found = find()
        try:
            return work(found)
        except OSError as error:
            if error.errno not in _RENAMED:
                raise
            last = error
    raise OSError(errno.EAGAIN, f"{last.strerror}: it keeps changing", last.filename) from last
