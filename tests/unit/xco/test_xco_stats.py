"""The statistics file: whole snapshots or a typed error, never a torn one."""

import struct
import threading
from pathlib import Path

import pytest

from xco.errors import ControllerError
from xco.protocol.stats import read_statistics

HEADER = struct.Struct("=8sIIIIQQQQQ")


def image(
    *, sequence: int = 2, used: int = 2, values: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
) -> bytes:
    """Return two fields, two columns and two rows."""
    names = b"".join(name.ljust(32, b"\0") for name in (b"first", b"second", b"left", b"right"))
    header = HEADER.pack(b"XCOSTAT1", 2, 2, 2, 77, sequence, 1000, used, 0, 0)
    return header + names + struct.pack("=6Q", *values)


def test_fields_and_rows_by_name(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    path.write_bytes(image())
    snapshot = read_statistics(path)
    assert snapshot.values == {"first": 1, "second": 2}
    assert snapshot.rows == ({"left": 3, "right": 4}, {"left": 5, "right": 6})
    assert (snapshot.pid, snapshot.age_ns(1500)) == (77, 500)
    path.write_bytes(image(used=1))
    assert len(read_statistics(path).rows) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is the loop running"),
        (b"something else", "not a file of statistics"),
        (image()[:-8], "cut short"),
        (image(used=3), "cut short"),
    ],
)
def test_what_is_not_whole_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "stats"
    path.write_bytes(content)
    with pytest.raises(ControllerError, match=said):
        read_statistics(path)


def test_no_file_is_a_loop_that_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(ControllerError, match="is the loop running"):
        read_statistics(tmp_path / "none")


def test_a_writer_that_ended_in_the_midst_is_named_after_two_seconds(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    path.write_bytes(image(sequence=3))
    slept: list[float] = []
    with pytest.raises(ControllerError, match="its writer ended during a write"):
        read_statistics(path, clock=lambda: sum(slept), sleep=slept.append)
    assert 2.0 <= sum(slept) < 2.1


def test_a_writer_that_loses_its_cpu_in_the_midst_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    path.write_bytes(image(sequence=3, values=(9,) * 6))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if sum(slept) > 1.9:
            with path.open("r+b") as file:
                file.write(image(sequence=4, values=(7,) * 6))

    found = read_statistics(path, clock=lambda: sum(slept), sleep=sleep)
    assert set(found.values.values()) == {7}


def test_a_writer_in_the_midst_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    path.write_bytes(image(sequence=3, values=(9,) * 6))
    with path.open("r+b") as file:

        def finish() -> None:
            file.seek(0)
            file.write(image(sequence=4, values=(7,) * 6))
            file.flush()

        writer = threading.Timer(0.001, finish)
        writer.start()
        values = set()
        while not values:
            try:
                values = set(read_statistics(path).values.values())
            except ControllerError:
                continue
        writer.join()
    assert values == {7}
