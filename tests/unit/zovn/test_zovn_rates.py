"""Rates between two reports of a switch."""

from typing import Any

import pytest

from zovn.switch.control import PortReport, SwitchReport
from zovn.switch.rates import rates

COUNTED = ("in", "in_bytes", "out", "out_bytes", "held", "blocked_ns")


def port(name: str = "a", *, stalled: int = 0, congestion: int = 0, **counters: int) -> PortReport:
    table: dict[str, Any] = {
        "class_": 0,
        "counters": dict.fromkeys(COUNTED, 0)
        | {key.rstrip("_"): counters[key] for key in counters},
        "drops": {"congestion": congestion, "stalled": stalled},
    }
    return PortReport(
        name=name, kind="vhost", path="/p", attached=True, attachments=1, vlan=1, trunk=False,
        trust="nothing", offloads=False, **table,
    )  # fmt: skip


def report(
    *ports: PortReport, naps: int = 0, missed: int = 0, cpu_ns: tuple[int, ...] = ()
) -> SwitchReport:
    return SwitchReport(naps=naps, missed=missed, lossy=0, cpu_ns=cpu_ns, ports=ports)


def test_what_was_counted_in_between_is_a_rate() -> None:
    before = report(port(in_=100, in_bytes=6400, out=7, held=5), naps=10)
    sent = port(in_=300, in_bytes=19200, out=7, out_bytes=500, held=1, blocked_ns=10**9)
    after = report(sent, naps=30, missed=8)
    found = rates(before, after, 2.0)
    (row,) = found.ports
    assert (row.in_per_s, row.in_bps, row.out_per_s) == (100.0, 8 * 6400.0, 0.0)
    assert (row.held_per_s, row.blocked_share, row.out_bps) == (-2.0, 0.5, 2000.0)
    assert (found.naps_per_s, found.missed_per_s) == (10.0, 4.0)


def test_only_reasons_that_grew_are_shown() -> None:
    before, after = port(congestion=4, stalled=4), port(congestion=4, stalled=14)
    assert rates(report(before), report(after), 5.0).ports[0].dropped_per_s == {"stalled": 2.0}


def test_a_port_that_was_added_in_between_counts_from_zero() -> None:
    (row,) = rates(report(), report(port(in_=10, held=3)), 1.0).ports
    assert (row.in_per_s, row.held_per_s) == (10.0, 3.0)
    assert rates(report(), report(port(stalled=2)), 1.0).ports[0].dropped_per_s == {"stalled": 2.0}


def test_a_switch_that_was_started_again_in_between_counts_from_zero() -> None:
    found = rates(report(port(in_=1000), naps=9), report(port(in_=30), naps=2), 1.0)
    assert (found.ports[0].in_per_s, found.naps_per_s) == (30.0, 2.0)


@pytest.mark.parametrize(
    ("before", "shares"),
    [((10**9, 0), (0.5, 0.25)), ((), (1.0, 0.25)), ((3 * 10**9, 0, 7), (1.0, 0.25))],
)
def test_threads_have_shares_of_the_time(
    before: tuple[int, ...], shares: tuple[float, ...]
) -> None:
    found = rates(report(cpu_ns=before), report(cpu_ns=(2 * 10**9, 5 * 10**8)), 2.0)
    assert found.cpu_shares == shares


@pytest.mark.parametrize("blocked_ns", [2 * 10**9, 10**12])
def test_no_port_is_blocked_for_longer_than_all_the_time(blocked_ns: int) -> None:
    found = rates(report(port()), report(port(blocked_ns=blocked_ns)), 1.0)
    assert found.ports[0].blocked_share == 1.0
