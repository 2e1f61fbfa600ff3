"""The real daemon on real Xen, emulated: it holds paravirtualised routers whatever befalls them.

Asserted are order and ratio: emulation has no true rates. Waits and windows are counted in samples
of the daemon, whose every one is kept. What is wrong while the emulator got too little CPU, or made
a packet cost now this and now that, is inconclusive. Errors and times are reported.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from system.xen.boot import Findings, Xen, opened
from system.xen.console import teller
from system.xen.judgement import check_calm
from system.xen.samples import Sample, write_csv
from system.xen.table import table

pytestmark = [pytest.mark.xen, pytest.mark.timeout(2400)]

ASPECTS = (
    *("discover", "flood", "latency", "hold", "retune", "pause"),
    *("release", "foreign", "restart", "crash"),
)
ORIGINAL_CAPS = [0, 95]
"""Of gold and silver before xtc; the exercise gave silver its own."""
ORIGINAL_WEIGHTS = [256, 300]
"""The same of their weights."""
DOM0_WEIGHT = 256


PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / "build/xen"


@pytest.fixture(scope="session")
def xen(request: pytest.FixtureRequest) -> Iterator[Xen]:
    """The image, and all boots of it."""
    say = teller(request.config)
    with opened(PROJECT, FOLDER, say) as booted:
        yield booted
        write_down(booted.found)
        for words in (FOLDER / "report.txt").read_text().splitlines():
            say(words)


def write_down(found: dict[str, Findings]) -> None:
    """Leave all that was found, every sample, and the figures as a table."""
    reports = {name: findings.report for name, findings in found.items()}
    (FOLDER / "report.json").write_text(json.dumps(reports, indent=1) + "\n")
    for name, findings in found.items():
        write_csv(findings.samples, FOLDER / f"samples-{name}.csv")
    lines = [line for name, report in reports.items() for line in table(name, report)]
    (FOLDER / "report.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def credit(xen: Xen) -> Findings:
    return xen.run("credit", ASPECTS)


@pytest.fixture(scope="session")
def credit2(xen: Xen) -> Findings:
    return xen.run("credit2", ("discover", "flood", "hold", "release"))


def test_discover_finds_the_guests_with_their_interfaces(credit: Findings) -> None:
    check_discovered(credit.of("discover"))


def test_a_configuration_without_interfaces_is_enough(credit: Findings) -> None:
    assert credit.of("discover")["check"]["routers"] == ["gold", "silver"]


def check_discovered(found: dict[str, Any]) -> None:
    (host,) = found["hosts"]
    assert host["problem"] == ""
    domains = {one["domain"]: one for one in host["domains"]}
    assert domains.keys() == {"gold", "silver"}, "dom0 itself is no router"
    for name, (domid, uuid) in found["guests"].items():
        domain = domains[name]
        assert (domain["uuid"], domain["running"], domain["controllable"]) == (uuid, True, True)
        assert sorted(domain["interfaces"]) == [f"vif{domid}.0", f"vif{domid}.1"]
        assert 'kind = "libvirt"' in domain["configuration"]
    assert (domains["gold"]["cap"], domains["silver"]["cap"]) == (None, 0.95)


def test_a_cap_change_takes_less_than_a_period(credit: Findings) -> None:
    found = credit.of("latency")
    with credit.judging("latency"):
        assert found["p90_ms"] < 1000


def test_starting_the_daemon_changes_no_cap(credit: Findings) -> None:
    assert credit.of("hold")["caps_before"] == ORIGINAL_CAPS


def test_a_held_router_has_a_floor_against_dom0_and_the_others(credit: Findings) -> None:
    """Its weight gives it what it uses, whatever that is here; no weight falls."""
    found = credit.of("hold")
    assert found["weights_before"] == ORIGINAL_WEIGHTS
    gold, silver = found["weights"]
    assert gold >= ORIGINAL_WEIGHTS[0]
    assert silver >= ORIGINAL_WEIGHTS[1]
    with credit.judging("hold"):
        floor_percent = 100 * gold / (DOM0_WEIGHT + gold + silver)
        assert floor_percent > 0.9 * found["seen"]["gold"]["cpu_percent"]


def test_weights_outlive_a_killed_daemon_and_are_put_back(credit: Findings) -> None:
    found = credit.of("crash")
    assert max(found["weights"]) > max(ORIGINAL_WEIGHTS)
    assert found["left_weights"] == ORIGINAL_WEIGHTS


def test_two_setpoints_are_held(credit: Findings) -> None:
    check_held(credit, "hold")


def test_setpoints_are_swapped(credit: Findings) -> None:
    check_held(credit, "retune")


def check_held(findings: Findings, aspect: str) -> None:
    """Order and ratio of two throughputs are those of the setpoints, and so roughly each."""
    found = findings.of(aspect)
    check_each(findings, aspect)
    rates = {name: seen["throughput_pps"] for name, seen in found["seen"].items()}
    setpoints = found["setpoints"]
    above, below = sorted(setpoints, key=setpoints.__getitem__, reverse=True)
    with findings.judging(aspect):
        ratio, wanted = rates[above] / rates[below], setpoints[above] / setpoints[below]
        assert ratio == pytest.approx(wanted, rel=0.4)


def check_each(findings: Findings, aspect: str) -> None:
    """Each loop is calm; each router is shielded, throttled, and roughly at its setpoint."""
    found = findings.of(aspect)
    for name, seen in found["seen"].items():
        window = findings.window(aspect, name)
        check_calm(window)
        assert {one["shield_problem"] for one in window} == {""}
        with findings.judging(aspect):
            assert all(is_shielded(one) for one in window)
            assert 0 < seen["cap_percent"] < ORIGINAL_CAPS[1]
            assert seen["throughput_pps"] < 0.9 * seen["offered_pps"]
            assert seen["throughput_pps"] == pytest.approx(found["setpoints"][name], rel=0.4)


def is_shielded(sample: Sample) -> bool:
    """Whether a shield is in force near the setpoint, on dom0's own kernel."""
    return bool(sample["shield_pps"]) and sample["shield_pps"] == pytest.approx(
        sample["setpoint_pps"], rel=0.5
    )


def test_a_paused_routers_cap_stays_where_it_is(credit: Findings) -> None:
    found = credit.of("pause")
    assert found["report"]["mode"] == "manual"
    assert found["report"]["setpoint_pps"] == found["high_pps"]
    assert set(found["caps"]) == {found["cap_before"]}


def test_a_cap_is_a_ceiling_however_slow_the_emulator(credit: Findings) -> None:
    found = credit.of("pause")
    assert found["paused"]["cpu_percent"] <= found["cap_before"] + 2


def test_a_resumed_router_follows_the_setpoint_it_was_given_meanwhile(credit: Findings) -> None:
    found = credit.of("pause")
    rate = found["resumed"]["gold"]["throughput_pps"]
    with credit.judging("pause"):
        assert rate == pytest.approx(found["high_pps"], rel=0.4)
        assert rate > 1.5 * found["low_pps"]


def test_a_released_router_is_uncapped_and_forwards_more(credit: Findings) -> None:
    found = credit.of("release")
    assert found["cap"] == 0
    with credit.judging("release"):
        assert found["seen"]["gold"]["throughput_pps"] > 1.3 * found["setpoint_pps"]


def test_foreign_caps_are_corrected_and_then_yielded_to(credit: Findings) -> None:
    found = credit.of("foreign")
    assert len(found["corrected_s"]) >= 3
    assert (found["report"]["finding"], found["report"]["mode"]) == ("foreign", "manual")
    assert found["cap"] == 77
    assert found["resumed"]["mode"] == "closed_loop"
    assert 0 < found["resumed_cap"] < 77


def test_a_guest_started_anew_is_found_and_held_by_itself(credit: Findings) -> None:
    found = credit.of("restart")
    before, after = found["before"], found["after"]
    assert after["domid"] > before["domid"]
    for life in (before, after):
        assert sorted(life["interfaces"]) == [f"vif{life['domid']}.{n}" for n in (0, 1)]
    check_each(credit, "restart")


def test_caps_outlive_a_killed_daemon_and_are_adopted(credit: Findings) -> None:
    found = credit.of("crash")
    assert found["left_behind"] == found["unattended"]
    for cap, adopted in zip(found["unattended"], found["adopted"], strict=True):
        assert 0 < cap < 95
        with credit.judging("crash"):
            assert 0 < adopted < 95
            assert adopted == pytest.approx(cap, rel=0.7)


def test_the_next_daemon_releases_to_the_true_originals(credit: Findings) -> None:
    found = credit.of("crash")
    assert (found["released"], found["left"]) == (ORIGINAL_CAPS, ORIGINAL_CAPS)
    assert found["exit_code"] == 0
    for held, free in zip(found["seen"].values(), found["free"].values(), strict=True):
        with credit.judging("crash"):
            assert free["throughput_pps"] > 1.2 * held["throughput_pps"]


def test_credit2_is_held_as_well(credit2: Findings) -> None:
    check_discovered(credit2.of("discover"))
    check_held(credit2, "hold")
    assert credit2.of("release")["cap"] == 0
