"""Throughput Collector: whose interface it is, and in which direction it counts."""

import pytest

from common.units import PacketsPerSecond
from xtc.measure.collector import Binding, Collector, Reading, Side, vif_domid
from xtc.measure.meter import Fault, InterfaceRate


def found(
    rx: float,
    tx: float,
    *,
    rx_dropped: float = 0,
    tx_dropped: float = 0,
    rx_bits: float | None = 0,
    tx_bits: float | None = 0,
) -> InterfaceRate:
    packets = map(PacketsPerSecond, (rx, rx_dropped, tx, tx_dropped))
    return InterfaceRate(*packets, rx_bits, tx_bits)


def flows(reading: Reading) -> list[float | None]:
    return [reading.throughput, reading.offered]


def test_the_host_receives_what_the_router_sends() -> None:
    reading = Collector({"r": Binding(("v",))}).aggregate({"v": found(10, 20, tx_dropped=5)})["r"]
    assert flows(reading) == [10, 25]


def test_on_its_own_side_the_router_transmits_what_it_sends() -> None:
    binding = Binding(("v",), side=Side.ROUTER)
    reading = Collector({"r": binding}).aggregate({"v": found(10, 20, rx_dropped=5)})["r"]
    assert flows(reading) == [20, 15]


@pytest.mark.parametrize(
    ("rates", "bits"),
    [
        ([found(10, 20, rx_bits=640, tx_bits=1280)], [640, 1280]),
        ([found(10, 20, rx_bits=640, tx_bits=1280, tx_dropped=5)], [640, 1600]),
        ([found(1, 1, rx_bits=8, tx_bits=16), found(1, 3, rx_bits=80, tx_bits=300)], [88, 316]),
        ([found(1, 1, rx_bits=None, tx_bits=16), found(1, 1, rx_bits=8, tx_bits=8)], [None, 24]),
        ([found(1, 1, rx_bits=8, tx_bits=16), found(1, 1, rx_bits=8, tx_bits=None)], [16, None]),
        ([found(1, 0, rx_bits=8, tx_dropped=3)], [8, None]),  # nobody knows how large they were
    ],
)
def test_bits_are_summed_with_those_of_what_was_dropped(
    rates: list[InterfaceRate], bits: list[float | None]
) -> None:
    named = {f"v{number}": rate for number, rate in enumerate(rates)}
    reading = Collector({"r": Binding(("v*",))}).aggregate(named)["r"]
    assert [reading.throughput_bps, reading.offered_bps] == bits
    assert reading.throughput is not None


def test_the_bits_of_a_router_that_lost_an_interface_are_at_least_those_of_the_others() -> None:
    collector = Collector({"r": Binding(("v0", "v1"))})
    reading = collector.aggregate({"v0": found(1, 1, rx_bits=800)})["r"]
    assert (reading.throughput_bps, reading.at_least, reading.at_least_bps) == (None, 1, 800)


def test_throughput_is_summed_over_interfaces() -> None:
    rates = {"vif7.0": found(10, 1), "vif7.1": found(5, 2), "vif70.0": found(99, 99)}
    reading = Collector({"r": Binding(domid=7)}).aggregate(rates)["r"]
    assert flows(reading) == [15, 3]
    assert reading.interfaces == ("vif7.0", "vif7.1")


@pytest.mark.parametrize("fault", list(Fault))
def test_one_interface_without_a_rate_leaves_the_router_without_one(fault: Fault) -> None:
    rates: dict[str, InterfaceRate | Fault] = {"vif7.0": found(10, 1), "vif7.1": fault}
    reading = Collector({"r": Binding(("vif7.*",))}).aggregate(rates)["r"]
    assert reading.throughput is None
    assert reading.problems == (f"vif7.1: {fault.value}",)


def test_an_interface_that_two_claim_belongs_to_neither() -> None:
    collector = Collector({"a": Binding(("v*",)), "b": Binding(("v0",)), "c": Binding(("w",))})
    readings = collector.aggregate({"v0": found(1, 1), "w": found(3, 3)})
    assert readings["a"].throughput is readings["b"].throughput is None
    assert readings["a"].problems[0] == "v0: claimed by several routers"
    assert flows(readings["c"]) == [3, 3]


def test_an_interface_of_two_that_comes_later_frees_neither_of_them() -> None:
    collector = Collector({"a": Binding(("a*.0",)), "b": Binding(("*z.0",))})
    collector.aggregate({"a.0": found(5, 5), "z.0": found(7, 7)})
    readings = collector.aggregate({"a.0": found(5, 5), "z.0": found(7, 7), "az.0": found(1, 1)})
    assert [(readings[vr].incomplete, readings[vr].at_least) for vr in "ab"] == [
        (True, 5),
        (True, 7),
    ]


def test_a_router_without_interfaces_is_not_idle_but_unknown() -> None:
    reading = Collector({"r": Binding(("v*",))}).aggregate({"lo": found(1, 1)})["r"]
    assert reading.throughput is None
    assert reading.problems == ("no interface matches",)


def test_an_interface_that_is_named_must_be_there() -> None:
    collector = Collector({"r": Binding(("v0", "v1"))})
    readings = [collector.aggregate({"v0": found(1, 1)})["r"] for _ in range(2)]
    assert [reading.throughput for reading in readings] == [None, None]
    assert readings[1].problems == ("v1: not there",)


def test_interfaces_are_mapped_anew_when_they_change_and_when_routers_do() -> None:
    collector = Collector({"r": Binding(("v*",))})
    collector.aggregate({"v0": found(1, 1)})
    assert flows(collector.aggregate({"v1": found(2, 2)})["r"]) == [2, 2]
    collector.rebind({"s": Binding(("v*",))})
    assert collector.aggregate({"v1": found(2, 2)})["s"].interfaces == ("v1",)


def test_a_host_that_loses_every_interface_after_a_reload_is_read() -> None:
    collector = Collector({"r": Binding(("v*",))})
    collector.aggregate({"v0": found(1, 1)})
    collector.rebind({"r": Binding(("v*",))})
    assert collector.aggregate({})["r"].problems == ("no interface matches",)


@pytest.mark.parametrize(
    ("name", "domid"), [("vif7.0", 7), ("vif12.3", 12), ("vif7", None), ("xvif7.0", None)]
)
def test_only_xens_names_tell_a_domain(name: str, domid: int | None) -> None:
    assert vif_domid(name) == domid


# Interfaces that a router had


def both(*names: str) -> dict[str, InterfaceRate | Fault]:
    return {name: found(1, 1) for name in names}


@pytest.mark.parametrize("patterns", [("v*",), ("v0", "v1")])
def test_a_router_that_loses_an_interface_is_not_measured_until_it_is_back(
    patterns: tuple[str, ...],
) -> None:
    collector = Collector({"r": Binding(patterns)})
    collector.aggregate(both("v0", "v1"))
    for _ in range(3):
        reading = collector.aggregate(both("v0"))["r"]
        assert (reading.throughput, reading.incomplete) == (None, True)
        assert reading.problems[0].startswith("v1: not there")
    assert flows(collector.aggregate(both("v0", "v1"))["r"]) == [2, 2]


def test_another_interface_that_matches_takes_the_place_of_one_that_is_gone() -> None:
    collector = Collector({"r": Binding(("v*",))})
    collector.aggregate(both("v0", "v1"))
    assert flows(collector.aggregate(both("v0", "v2"))["r"]) == [2, 2]
    assert collector.aggregate(both("v2"))["r"].incomplete


def test_a_router_that_had_none_begins_with_those_that_it_has() -> None:
    collector = Collector({"r": Binding(("v*",))})
    for names in (("v0", "v1"), (), ("v5",)):
        reading = collector.aggregate(both(*names))["r"]
    assert flows(reading) == [1, 1]


def test_a_guest_whose_interfaces_changed_between_two_snapshots_is_measured_by_the_new() -> None:
    collector = Collector({"r": Binding(("v*",))})
    collector.aggregate(both("v0", "v1"))
    gone: dict[str, InterfaceRate | Fault] = {"v0": Fault.VANISHED, "v1": Fault.VANISHED}
    collector.aggregate({"v2": Fault.APPEARED, "v3": Fault.APPEARED, **gone})
    assert flows(collector.aggregate(both("v2", "v3"))["r"]) == [2, 2]
    assert collector.aggregate(both("v2"))["r"].incomplete


@pytest.mark.parametrize(("forget", "incomplete"), [(True, False), (False, True)])
def test_a_reload_accepts_that_an_interface_is_gone(*, forget: bool, incomplete: bool) -> None:
    bindings = {"r": Binding(("v*",))}
    collector = Collector(bindings)
    collector.aggregate(both("v0", "v1"))
    collector.rebind(bindings, forget=forget)
    assert collector.aggregate(both("v0"))["r"].incomplete is incomplete


def test_a_guest_that_has_other_interfaces_now_is_measured_by_those() -> None:
    collector = Collector({"r": Binding(("v0", "v1"))})
    collector.aggregate(both("v0", "v1"))
    collector.rebind({"r": Binding(("v0",))})
    assert flows(collector.aggregate(both("v0"))["r"]) == [1, 1]
