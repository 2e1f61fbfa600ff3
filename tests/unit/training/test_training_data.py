"""Recordings survive their file, and a broken file names its line and column."""

import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from training.errors import RecordingError, SampleError
from training.recording.recording import (
    COLUMNS,
    LONGEST_LINE,
    MOST_LINES,
    SIZED_COLUMNS,
    Metadata,
    Recording,
    Sample,
    append_csv,
    csv_head,
    csv_row,
    parse_csv,
    read_csv,
    write_csv,
)

METADATA = Metadata(
    host='edge "7"\n\x7f',
    cpu="AMD EPYC",
    kernel="Linux 6.18",
    actuator="cgroup",
    started="2026-11-21T12:00:00+00:00",
    offered_pps=200e3,
)
SAMPLES = (
    Sample(at=1.0, cap=None, throughput_pps=200e3, phase="uncapped"),
    Sample(at=2.0, cap=0.1, throughput_pps=1 / 3, offered_pps=2e5, used=0.1, binding=True, visit=1),
    Sample(at=2.0, cap=0.2, throughput_pps=0.0, binding=False, phase="held_out", visit=2),
)
RECORDING = Recording(METADATA, SAMPLES)
ROW = csv_row(SAMPLES[1])


def test_a_recording_reads_back_as_written(tmp_path: Path) -> None:
    write_csv(RECORDING, tmp_path / "a.csv")
    assert read_csv(tmp_path / "a.csv") == RECORDING
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_rows_may_be_appended_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_csv(Recording(METADATA, ()), path)
    for sample in SAMPLES:
        append_csv(sample, path)
    assert read_csv(path) == RECORDING


def test_a_recording_of_packet_sizes_has_a_column_more(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    sized = Recording(
        msgspec.structs.replace(METADATA, packet_bytes=64),
        tuple(replace(sample, packet_bytes=64) for sample in SAMPLES),
    )
    write_csv(Recording(sized.metadata, ()), path)
    for sample in sized.samples:
        append_csv(sample, path, sized=True)
    assert read_csv(path) == sized
    lines = path.read_text().splitlines()
    assert "# packet_bytes = 64" in lines
    assert ",".join(SIZED_COLUMNS) in lines
    assert lines[-1].endswith(",64")
    write_csv(sized, path)
    assert read_csv(path) == sized


def test_a_recording_without_packet_sizes_keeps_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_csv(RECORDING, path)
    assert ",".join(COLUMNS) in path.read_text().splitlines()
    assert "packet_bytes" not in path.read_text()


@pytest.mark.parametrize("cell", ["13", "65550", "64.5", "many"])
def test_a_packet_size_that_no_frame_has_is_refused(cell: str) -> None:
    text = csv_head(METADATA, sized=True) + ROW.rstrip("\n") + f",{cell}\n"
    with pytest.raises(RecordingError, match="packet_bytes"):
        parse_csv(text, "a.csv")


def test_a_row_that_a_crash_cut_off_is_left_out(tmp_path: Path) -> None:
    """Even where what is left looks whole: `1` may be the begin of `12`."""
    path = tmp_path / "a.csv"
    for length in range(len(ROW)):
        path.write_text(csv_head(METADATA) + csv_row(SAMPLES[0]) + ROW[:length])
        assert read_csv(path).samples == SAMPLES[:1]


def test_spreadsheets_line_ends_and_byte_order_mark_are_read(tmp_path: Path) -> None:
    text = csv_head(METADATA) + "".join(map(csv_row, SAMPLES))
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_csv(tmp_path / "a.csv") == RECORDING


def test_a_new_recording_replaces_the_old_one_or_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_csv(RECORDING, path)
    (tmp_path / f"a.csv.{os.getpid()}.new").mkdir()
    with pytest.raises(RecordingError, match="file"):
        write_csv(Recording(METADATA, ()), path)
    assert read_csv(path) == RECORDING


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("at_s", "soon"),
        ("at_s", "nan"),
        ("cap", ""),
        ("cap", "0"),
        ("cap", "-0.1"),
        ("cap", "inf"),
        ("throughput_pps", "-1"),
        ("throughput_pps", "1e10"),
        ("offered_pps", "nan"),
        ("used", "1e6"),
        ("binding", "yes"),
        ("phase", "warm"),
        ("visit", "-1"),
        ("visit", "1.5"),
    ],
)
def test_a_wrong_cell_names_its_line_and_column(column: str, cell: str) -> None:
    cells = ROW.strip().split(",")
    cells[COLUMNS.index(column)] = cell
    head = csv_head(METADATA) + csv_row(SAMPLES[0])
    with pytest.raises(RecordingError) as caught:
        parse_csv(head + ",".join(cells) + "\n", "a.csv")
    assert (caught.value.line, caught.value.column) == (head.count("\n") + 1, column)
    assert caught.value.fix in str(caught.value)


def test_a_row_of_another_length_or_out_of_order_is_refused() -> None:
    with pytest.raises(RecordingError, match="row: 2 cells"):
        parse_csv(csv_head(METADATA) + "1,2\n", "a.csv")
    with pytest.raises(RecordingError, match="at_s: 1 after 2"):
        parse_csv(csv_head(METADATA) + ROW + csv_row(SAMPLES[0]), "a.csv")


@pytest.mark.parametrize(
    ("line", "column", "fix"),
    [
        ('# hst = "a"', "hst", "did you mean host?"),
        ("# host = 1", "host", "correct"),
        ("# offered_pps = nan", "offered_pps", "correct"),
        ("# host = ", "metadata", "as in TOML"),
    ],
)
def test_wrong_metadata_name_their_line_and_key(line: str, column: str, fix: str) -> None:
    good = csv_head(METADATA).splitlines()
    text = "\n".join([good[0], line, *good[-1:]]) + "\n"
    if column == "host":
        text = "\n".join([line, good[-1]]) + "\n"
    with pytest.raises(RecordingError) as caught:
        parse_csv(text, "a.csv")
    assert caught.value.column == column
    assert caught.value.line > 0
    assert fix in caught.value.fix


@pytest.mark.parametrize("line", ['# kernel = "Linux 6.18"', '# kernel = "another"'])
def test_a_key_that_is_given_twice_is_refused(line: str) -> None:
    """Which of the two is true nobody knows, and a sweep would go on with the wrong host."""
    head = csv_head(METADATA).splitlines()
    first, second = head.index('# kernel = "Linux 6.18"') + 1, len(head)
    text = "\n".join([*head[:-1], line, head[-1]]) + "\n"
    with pytest.raises(RecordingError) as caught:
        parse_csv(text + ROW, "a.csv")
    assert (caught.value.column, caught.value.line) == ("kernel", second)
    assert f"line {first}" in caught.value.problem
    assert "remove" in caught.value.fix


def test_a_head_that_would_take_much_memory_is_refused() -> None:
    """TOML keeps each part of a dotted key with all parts before it."""
    columns, empty = ",".join(COLUMNS), "#\n" * MOST_LINES
    dotted = f"# {'a.' * (LONGEST_LINE // 2)}a = 1"
    with pytest.raises(RecordingError, match=r"line 2, metadata: \d+ characters"):
        parse_csv(f'# host = "a"\n{dotted}\n{columns}\n', "a.csv")
    with pytest.raises(RecordingError, match="metadata: more than"):
        parse_csv(f'# host = "a"\n{empty}{columns}\n', "a.csv")


def test_the_longest_texts_are_read_back() -> None:
    longest = "\x01" * 1000
    texts = ("cpu", "kernel", "hypervisor", "actuator", "router", "started", "xtc_version")
    metadata = Metadata(host="a" * 100, **dict.fromkeys(texts, longest))
    assert parse_csv(csv_head(metadata), "a.csv").metadata == metadata


def test_a_file_without_host_or_header_or_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"line 1, host: is not given .*begin the file"):
        parse_csv(",".join(COLUMNS) + "\n", "a.csv")
    with pytest.raises(RecordingError, match="header"):
        parse_csv('# host = "a"\n', "a.csv")
    with pytest.raises(RecordingError, match="No such file"):
        read_csv(tmp_path / "none.csv")
    (tmp_path / "c.csv").touch()
    with pytest.raises(RecordingError, match=r"c\.csv: file: empty"):
        read_csv(tmp_path / "c.csv")
    with pytest.raises(RecordingError, match="file: no whole line"):
        parse_csv('# host = "a', "a.csv")
    (tmp_path / "b.csv").write_bytes(b"\xff\n")
    with pytest.raises(RecordingError, match="UTF-8"):
        read_csv(tmp_path / "b.csv")


def test_a_sample_that_no_host_shows_is_refused() -> None:
    with pytest.raises(SampleError, match="throughput_pps: nan"):
        Sample(at=0.0, cap=0.1, throughput_pps=float("nan"))
