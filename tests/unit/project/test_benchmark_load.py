"""The controller's load benchmark: which runs its command line asks for, and their medians."""

import sys
from dataclasses import replace

import pytest

from benchmarks.xco.controller.load import Load, alike, median, parsed

RUN = Load(
    hosts=32,
    strategy="gcc",
    joined=32,
    reports_share=1.0,
    messages_per_s=13_000.0,
    core_share=0.14,
    messages_per_core_s=93_000.0,
    answers=0,
    unanswered=0,
    p50_us=0.0,
    p99_us=0.0,
    slices_per_s=0.0,
    realtime=True,
    pairs=992,
    ports_per_s=3_200.0,
    plans_per_s=67.0,
    directives_per_s=4_000.0,
)


def runs_of(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[tuple[int, int, str]]:
    monkeypatch.setattr(sys, "argv", ["load", *words])
    return parsed()[1]


def test_pairs_are_divided_among_hosts_under_both_strategies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert runs_of(monkeypatch, "--pairs", "64,1000") == [
        (32, 2, "rate"),
        (32, 2, "gcc"),
        (32, 31, "rate"),
        (32, 31, "gcc"),
    ]


def test_without_pairs_hosts_have_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--hosts", "16,64", "--strategy", "hybrid")
    assert runs_of(monkeypatch, *words) == [(16, 0, "hybrid"), (64, 0, "hybrid")]


@pytest.mark.parametrize(("hosts", "pairs"), [("32", "31"), ("32", "1024"), ("128", "8320")])
def test_pairs_that_hosts_cannot_have_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], hosts: str, pairs: str
) -> None:
    with pytest.raises(SystemExit):
        runs_of(monkeypatch, "--hosts", hosts, "--pairs", pairs)
    assert "--pairs: write at least" in capsys.readouterr().err


def test_medians_are_of_runs_alike() -> None:
    other = replace(RUN, strategy="rate", core_share=0.2)
    found = [RUN, other, replace(RUN, core_share=0.1), replace(RUN, core_share=0.3)]
    assert [median(runs) for runs in alike(found)] == [RUN, other]
