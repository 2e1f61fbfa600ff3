"""Progress for the person who waits for a test of minutes."""

import time
from collections.abc import Callable

import pytest


def teller(config: pytest.Config) -> Callable[[str], None]:
    """Return what shows a line immediately, although pytest captures output."""
    capture = config.pluginmanager.getplugin("capturemanager")
    terminal = config.pluginmanager.getplugin("terminalreporter")

    def say(words: str) -> None:
        with capture.global_and_fixture_disabled():
            terminal.write_line(f"{time.strftime('%H:%M:%S')} xen: {words}")

    return say
