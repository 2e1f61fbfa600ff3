"""What xco top shows: rates between two looks, the order of hosts, short quantities."""

import msgspec
import pytest

from xco.cli.output import short_rate, short_size
from xco.cli.status import Machine
from xco.cli.top import busiest_first, frame


def look(seconds: float, sent: int, slices: int, epoch: int = 7) -> Machine:
    """Return what a look would have found, in few words."""
    flow = {"source": "10.0.0.1", "destination": "10.0.0.2", "host": "b", "open_bps": 0}
    host = {"host": "a", "joined": 1, "coordinated": 1, "mode": "slice", "fell_back": 0}
    host |= {"backlog_bytes": 1, "backlog_flows": 1, "granted_bps": 9, "rate_kbps": 2}
    return Machine(
        at_ns=round(seconds * 1e9),
        controller={
            "controller": {"role": "leader", "epoch": epoch, "problem": ""},
            "loop": {"epoch": epoch, "slices_started": slices},
            "hosts": [host | {"silent_ns": 0, "slices": slices, "granted_ns": slices * 10**6}],
        },
        coordinator={
            "interface": "eth0",
            "mode": "slice",
            "joined": True,
            "epoch": epoch,
            "flows": [flow | {"sent_bytes": sent, "backlog_bytes": 5}],
            "counters": {"fallbacks": 0, "flows": 1, "given_up": slices},
        },
    )


def test_rates_are_what_happened_between_two_looks() -> None:
    shown = frame(look(1.0, 1000, 100), look(1.5, 63_500, 300))
    assert shown.flows[0].rate_bps == 10**6
    (host,) = shown.hosts
    assert (host.slices_per_s, host.granted_share, host.rate_bps) == (400, 0.4, 2000)
    assert shown.controller is not None
    assert shown.controller["slices_started_per_s"] == 400
    assert shown.coordinator is not None
    assert shown.coordinator["given_up_per_s"] == 400


def test_the_rates_of_flows_are_taken_over_a_longer_time() -> None:
    shown = frame(look(9.0, 10**6, 100), look(10.0, 10**6, 300), look(0.0, 0, 0))
    assert shown.flows[0].rate_bps == 800_000
    assert shown.hosts[0].slices_per_s == 200


def test_what_began_anew_counts_from_zero() -> None:
    shown = frame(look(1.0, 10**9, 5000), look(2.0, 1000, 10, epoch=8))
    assert shown.flows[0].rate_bps == 8000
    assert shown.hosts[0].slices_per_s == 10
    assert shown.controller is not None
    assert shown.controller["slices_started_per_s"] == 10


def test_those_in_trouble_come_first() -> None:
    shown = frame(look(1, 0, 0), look(2, 0, 0))
    (host,) = shown.hosts
    calm = msgspec.structs.replace(host, host="calm", backlog_bytes=0)
    lost = msgspec.structs.replace(calm, host="lost", fell_back=True)
    ordered = busiest_first(msgspec.structs.replace(shown, hosts=(calm, host, lost)))
    assert [row.host for row in ordered.hosts] == ["lost", "a", "calm"]


@pytest.mark.parametrize(
    ("value", "rate", "size"),
    [
        (0, "-", "-"),
        (999, "999 b/s", "999 B"),
        (999_600, "1 Mb/s", "1 MB"),
        (943_200_000, "943 Mb/s", "943 MB"),
        (5 * 10**15, "5000 Tb/s", "5000 TB"),
    ],
)
def test_quantities_are_short(value: int, rate: str, size: str) -> None:
    assert (short_rate(value), short_size(value)) == (rate, size)
