"""Which lines of the pure cores their own tests reach, in a run of these tests or of all.

`scripts.coverage` names a folder by an environment variable; each process writes what it saw there.
Lines count where a test that scripts/mutation/modules.toml names reaches them, or loading a module.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from scripts.reached import Reached

FOLDER = "XTC_REACHED"
"""The same as in `scripts.coverage`, which is not where only the tests are."""


def _noting() -> "_Measured | None":
    """Have modules note their lines, if that is wanted; before any of them is loaded."""
    if FOLDER not in os.environ:
        return None
    from scripts.coverage import ROOT, files, own_tests  # noqa: PLC0415  as above
    from scripts.reached import Reached  # noqa: PLC0415  as above

    folder = Path(os.environ[FOLDER])
    if "PYTEST_XDIST_WORKER" in os.environ:
        del os.environ[FOLDER]  # programs that tests start are not measured
    reached = Reached(ROOT, files())
    reached.install()
    return _Measured(folder, reached, own_tests())


class _Measured:
    def __init__(self, folder: Path, reached: "Reached", files: set[Path]) -> None:
        self._folder, self._reached, self._files = folder, reached, files
        self._counts = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Let the lines of one of these tests count, and no others."""
        own = item.path in self._files
        if own and not self._counts:
            self._reached.forget()
        elif self._counts and not own:
            self._reached.count()
        self._counts = own
        return (yield)

    def pytest_sessionfinish(self) -> None:
        """Write what counts."""
        if self._counts:
            self._reached.count()
        file = self._folder / f"reached-{os.getpid()}.json"
        file.write_text(json.dumps(self._reached.lines))


_measured = _noting()


def pytest_configure(config: pytest.Config) -> None:
    """Watch the tests, if that is wanted."""
    if _measured is not None:
        config.pluginmanager.register(_measured)
