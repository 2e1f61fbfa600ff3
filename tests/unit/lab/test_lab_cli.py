"""What the lab's command line reads, and how it refuses."""

import sys

import pytest

from lab.cli import main, parse_rate, parse_router
from lab.errors import BadRequestError, MissingRequirementError
from lab.programs.processes import Place


@pytest.mark.parametrize(
    ("text", "rate"),
    [("60kpps", 60e3), ("60 kp/s", 60e3), ("1.5Mpps", 1.5e6), ("800", 800.0), ("800p/s", 800.0)],
)
def test_rates_read_as_operators_write_them(text: str, rate: float) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", ".", "1.2.3", "fast", "-5", "60 kbit/s", "1e3", "9999Mpps"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError, match="rate"):
        parse_rate(text)


def test_a_router_is_a_name_and_a_kind() -> None:
    assert parse_router("vr1=user-space") == ("vr1", "user-space")


@pytest.mark.parametrize("text", ["vr1", "vr1=", "=kernel", "vr1=xen", "dom0=kernel"])
def test_what_is_no_router_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError):
        parse_router(text)


def test_a_place_says_where_its_program_starts() -> None:
    argv = Place("/run/netns/lab-dom0", "/sys/fs/cgroup/lab/vr1", 1).command(["echo", "--cpu"])
    own, program = argv[: argv.index("--")], argv[argv.index("--") + 1 :]
    assert own[own.index("--netns") + 1] == "/run/netns/lab-dom0"
    assert own[own.index("--cgroup") + 1] == "/sys/fs/cgroup/lab/vr1"
    assert own[own.index("--cpu") + 1] == "1"
    assert program == ["echo", "--cpu"]


def test_what_is_missing_is_all_in_the_message() -> None:
    error = MissingRequirementError(["no root", "no veth"])
    assert str(error) == "the lab cannot run here: no root; no veth"


def test_a_refusal_is_one_line_that_repeats_what_was_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "argv", ["xtc-lab", "up", "--router", "a:ab:[b]c=kernel"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (1, "")
    assert said.err.startswith("xtc-lab: name: 'a:ab:[b]c' is not ")
    assert said.err.count("\n") == 1
