"""Labs with one prefix begin and end one at a time."""

from pathlib import Path
from threading import Thread

import pytest

from lab.system import teardown
from lab.system.teardown import alone


@pytest.fixture(autouse=True)
def _locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teardown, "LOCKS", tmp_path / "locks")


def test_a_prefix_is_waited_for() -> None:
    order: list[str] = []

    def follow() -> None:
        with alone("one"):
            order.append("second")

    second = Thread(target=follow)
    with alone("one"):
        second.start()
        second.join(0.1)
        order.append("first")
    second.join()
    assert order == ["first", "second"]


def test_another_prefix_is_not_waited_for() -> None:
    with alone("one"), alone("other"):
        pass


def test_an_error_ends_the_wait() -> None:
    with pytest.raises(OSError, match="refused"), alone("one"):
        raise OSError("refused")
    with alone("one"):
        pass
