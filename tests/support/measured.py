"""Coverage of the pure cores by their own tests, in a run of all tests.

With `--cov-own-tests`, and pytest-cov's options for what to measure, lines count only where a test
that scripts/mutation/modules.toml names reaches them. Measuring makes a test half as slow again,
and it would not say more for all the others.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run measure some tests only."""
    parser.addoption(
        "--cov-own-tests",
        action="store_true",
        help="measure coverage only in the tests of the pure cores",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Measure some tests only, if that is wanted."""
    if config.getoption("cov_own_tests") and config.pluginmanager.hasplugin("_cov"):
        config.pluginmanager.register(_OwnTests(config))


class _OwnTests:
    """Switches pytest-cov, which measures from its start on."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._files = set[Path]()
        self._measures = True

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[Any]:
        """Measure what runs when modules are loaded, in one process: it is the same in all."""
        from scripts.coverage import own_tests  # noqa: PLC0415  it loads modules that are measured

        self._files = own_tests()
        worker = getattr(self._config, "workerinput", {"workerid": "gw0"})["workerid"]
        self._measure(worker == "gw0")
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Measure a test with its fixtures if it is one of those."""
        self._measure(item.path in self._files)
        return (yield)

    def _measure(self, wanted: bool) -> None:
        if wanted == self._measures:
            return
        controller = self._config.pluginmanager.getplugin("_cov").cov_controller
        (controller.resume if wanted else controller.pause)()
        self._measures = wanted
