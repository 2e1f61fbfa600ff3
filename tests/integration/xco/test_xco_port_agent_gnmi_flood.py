"""gNMI streams faster than the agent: what is due is read, memory is bounded, all threads end."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gnmi_switch import GnmiSwitch, container, counters, leaf, pb2, serving
from port_agent_rig import TO_H1, TO_STORE, agent, controller, gnmi, rising, until
from support.schedstat import turns

from xco.errors import SwitchAway
from xco.ports.gnmi_paths import GnmiPort
from xco.ports.gnmi_stream import GnmiStream
from xco.ports.gnmi_tls import GnmiTarget
from xco.ports.reader import Counters

WIDE_KB = 300
SOON_S = 10.0
"""More than a read takes on a busy machine, so that a read that hangs fails."""


@dataclass
class Flood(GnmiSwitch):
    """Sends one sample, and then the same notification without end or pause."""

    wide: bool = True
    sent: int = 0

    def Subscribe(self, requests: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        wanted = next(requests).subscribe
        path = wanted.subscription[0].path
        yield from self._sample(wanted)
        yield pb2.SubscribeResponse(sync_response=True)
        every = pb2.SubscribeResponse(update=wide(path) if self.wide else partial(path))
        while not self.stopping.is_set() and context.is_active():
            self.sent += 1
            yield every


def wide(path: Any) -> Any:
    """Return counters, and much that is of no use."""
    filler = (leaf(path, f"{name:0>80}", name) for name in range(WIDE_KB * 1000 // 160))
    update = [*filler, container(path, counters(2))]
    return pb2.Notification(timestamp=time.time_ns(), update=update)


def partial(path: Any) -> Any:
    """Return what completes no sample: packets without octets."""
    return pb2.Notification(timestamp=time.time_ns(), update=[leaf(path, "out-pkts", 3)])


@contextmanager
def flooded(switch: Flood) -> Iterator[GnmiStream]:
    with serving(switch) as port:
        target = GnmiTarget(f"localhost:{port}", insecure=True)
        reader = GnmiStream(target, [GnmiPort("e1")], 50_000_000)
        try:
            yield reader
        finally:
            reader.close()


def test_a_flood_is_read_in_time_and_then_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xco.ports.gnmi_queue._FULL_NS", 1_000_000_000)
    monkeypatch.setattr("xco.ports.gnmi_queue._BYTES_MAX", 2 << 20)
    with flooded(Flood()) as reader:
        assert isinstance(timely(reader)[0], Counters)
        with pytest.raises(SwitchAway, match="sends more than the agent can read") as raised:
            until(lambda: timely(reader) and False, "the flood", 60)
    assert "`sample_interval`" in raised.value.fix


def timely(reader: GnmiStream) -> Any:
    """Read; check that it ends soon."""
    began = time.monotonic()
    try:
        return reader.read()
    finally:
        assert time.monotonic() - began < SOON_S


def test_a_switch_stops_while_the_agent_does_not_read_and_the_thread_ends() -> None:
    switch = Flood()
    with flooded(switch) as reader:
        reader.read()
        until(lambda: at_rest(switch), "flow control", 30)
        assert callers()
        reader.close()
        until(lambda: not callers(), "the end of the thread")


def at_rest(switch: Flood) -> bool:
    """Whether the switch sends nothing for a while."""
    before = switch.sent
    time.sleep(0.5)
    return switch.sent == before


def callers() -> list[threading.Thread]:
    """Return the threads that take answers."""
    return [one for one in threading.enumerate() if one.name == "gnmi"]


def test_updates_that_complete_no_sample_do_not_hold_a_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("xco.ports.gnmi_stream._READ_NS", 300_000_000)
    with flooded(Flood(wide=False)) as reader:
        assert isinstance(timely(reader)[0], Counters)
        timely(reader)


def test_a_switch_that_floods_is_named_and_starves_no_other(tmp_path: Path) -> None:
    with controller(tmp_path) as there, serving(Flood()) as bad, serving(GnmiSwitch()) as good:
        ports = gnmi(bad, "e1", "store", "insecure = true")
        ports += gnmi(good, "e2", "h1", "insecure = true")
        with agent(tmp_path, there.address, ports) as ours:
            until(rising(there, TO_STORE), "the flood")
            before, began = len(there.ports(TO_H1)), time.monotonic()
            turns_before = turns(ours.process.pid)

            def named() -> list[dict[str, Any]]:
                events = ours.events("port_unreadable")
                return [one for one in events if one["port"] == "tor -> store"]

            (event,) = until(named, "the flood in the log", 40)
            heard, took_s = len(there.ports(TO_H1)) - before, time.monotonic() - began
            waited_s = turns(ours.process.pid).since(turns_before).waited
    assert "sends more than the agent can read" in event["problem"]
    assert heard > 3 * (took_s - waited_s)
