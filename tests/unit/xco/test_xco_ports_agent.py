"""The port agent's decisions: what it sends, and when a controller hears it."""

from dataclasses import replace
from pathlib import Path

import pytest

from xco.errors import PortError, PortGone, SwitchUntrusted
from xco.ports.agent import Agent, Change, Look
from xco.ports.config import AgentConfig, AgentPort
from xco.ports.metrics import PortCollector
from xco.ports.port_tables import LinuxPort
from xco.ports.reader import Counters, Reading
from xco.ports.status import AgentStatus, Rates, status
from xco.protocol.checks import AGENT, CONTROLLER, PORTS_MAX
from xco.protocol.messages import Header, Status, Strategy, Welcome
from xco.protocol.wire import decode, encode

MS = 1_000_000
S = 1000 * MS
NOW = 500 * S
KEY = bytes(range(32))


def config(ports: int = 2, interval_ns: int = 50 * MS) -> AgentConfig:
    table = LinuxPort(link=("tor", "h"), reader="linux", interface="lo")
    rows = [AgentPort(("tor", f"h{at}"), 1000, at, 10**9, table) for at in range(ports)]
    where = Path("/nonexistent")
    return AgentConfig("xco.toml", (), where, bytes(32), interval_ns, where, None, tuple(rows))


def agent(ports: int = 2, interval_ns: int = 50 * MS) -> Agent:
    return Agent(config(ports, interval_ns), sequence=7)


def look(*readings: Reading, at_ns: int = NOW) -> Look:
    return Look(at_ns, dict(enumerate(readings)))


def counted(count: int) -> Counters:
    return Counters(count, 100 * count, marks=count // 2, drops=1, backlog_bytes=9)


def welcome(
    state: Status = Status.JOINED, *, epoch: int = 5, sequence: int = 1, to: int = AGENT
) -> Welcome:
    header = Header(CONTROLLER, epoch, sequence, 0)
    return Welcome(header, to, state, Strategy.RATE, 0, 0, 0, 0)


def test_what_was_read_is_sent_once() -> None:
    ours = agent()
    assert list(ours.seen(look(counted(4), counted(6), at_ns=NOW - 3))) == []
    (message,) = ours.messages(NOW)
    assert message.header == Header(AGENT, 0, 8, NOW)
    first, second = message.ports
    assert (first.source, first.target, first.read_ns) == (1000, 0, NOW - 3)
    assert (first.packets, first.bytes, first.marks) == (4, 400, 2)
    assert (second.target, second.drops, second.backlog_bytes) == (1, 1, 9)
    assert ours.messages(NOW + MS) == []


def test_many_ports_go_in_several_messages_that_the_protocol_takes() -> None:
    ours = agent(2 * PORTS_MAX + 1)
    list(ours.seen(look(*[counted(1)] * (2 * PORTS_MAX + 1))))
    sent = ours.messages(NOW)
    assert [len(message.ports) for message in sent] == [PORTS_MAX, PORTS_MAX, 1]
    assert [message.header.sequence for message in sent] == [8, 9, 10]
    assert [decode(encode(message, KEY), KEY) for message in sent] == sent


def test_a_port_that_fails_is_left_out_and_reported_once() -> None:
    ours = agent()
    list(ours.seen(look(counted(4), counted(6))))
    ours.messages(NOW)
    gone = PortGone("eth1", "there is no such interface")
    assert list(ours.seen(look(counted(5), gone))) == [Change(1, str(gone))]
    assert [port.target for port in ours.messages(NOW)[0].ports] == [0]
    other = PortError("eth1", "something else")
    assert list(ours.seen(look(counted(5), other))) == []
    assert list(ours.seen(look(counted(5), counted(7)))) == [Change(1, "")]
    assert [port.packets for port in ours.messages(NOW)[0].ports] == [5, 7]


def test_no_port_at_all_sends_nothing() -> None:
    ours = agent()
    assert len(list(ours.seen(look(*[PortGone("eth1", "gone")] * 2)))) == 2
    assert ours.messages(NOW) == []


def test_the_controllers_epoch_is_used_from_then_on() -> None:
    ours = agent()
    ours.answered(welcome(Status.HELLO_FIRST, epoch=9), NOW)
    assert not ours.heard(NOW)
    list(ours.seen(look(counted(1))))
    assert ours.messages(NOW)[0].header.epoch == 9
    ours.answered(welcome(epoch=9, sequence=2), NOW)
    assert ours.heard(NOW)


@pytest.mark.parametrize(
    "late",
    [
        welcome(epoch=4, sequence=9),
        welcome(epoch=5, sequence=1),
        welcome(epoch=6, sequence=9, to=3),
    ],
    ids=["lower epoch", "duplicate", "for a host"],
)
def test_an_overtaken_answer_changes_nothing(late: Welcome) -> None:
    ours = agent()
    ours.answered(welcome(Status.TOPOLOGY_DIFFERS, epoch=5, sequence=1), NOW)
    ours.answered(late, NOW)
    assert not ours.heard(NOW)
    assert ours.epoch == 5


@pytest.mark.parametrize(("interval_ns", "lasts_ns"), [(50 * MS, S), (S, 3 * S)])
def test_an_answer_counts_for_a_second_and_three_intervals(interval_ns: int, lasts_ns: int) -> None:
    ours = agent(interval_ns=interval_ns)
    ours.answered(welcome(), NOW)
    assert ours.heard(NOW + lasts_ns - 1)
    assert not ours.heard(NOW + lasts_ns)


def test_the_reason_why_no_controller_hears_is_named() -> None:
    ours = agent()
    assert "no controller answers" in ours.unheard_because(NOW)
    ours.answered(welcome(Status.TOPOLOGY_DIFFERS), NOW)
    assert "other hosts or switches" in ours.unheard_because(NOW)
    ours.answered(welcome(Status.HELLO_FIRST, sequence=2), NOW)
    assert "new epoch" in ours.unheard_because(NOW)
    ours.answered(welcome(sequence=3), NOW)
    assert ours.unheard_because(NOW) == ""
    assert "no controller answers" in ours.unheard_because(NOW + S)


def seen_status(ours: Agent, before: list[Reading], after: list[Reading]) -> AgentStatus:
    list(ours.seen(look(*before, at_ns=NOW - S // 2)))
    earlier = list(ours.states)
    list(ours.seen(look(*after)))
    return status(ours, config().ports, earlier, 42, NOW)


def test_rates_are_those_since_the_state_before() -> None:
    found = seen_status(agent(), [counted(10), counted(1)], [counted(30), counted(1)])
    moving, idle = found.ports
    assert (moving.rate_bps, moving.marks_per_s) == (8 * 2000 * 2, 20.0)
    assert (idle.rate_bps, idle.packets) == (0.0, 1)


def test_a_counter_that_restarts_has_no_rate() -> None:
    found = seen_status(agent(), [counted(30), counted(1)], [counted(3), counted(2)])
    assert found.ports[0].rate_bps == 0.0
    assert found.ports[1].rate_bps == 8 * 100 * 2


def test_a_rate_lasts_until_the_next_sample_and_ends_with_a_problem() -> None:
    ours = agent()
    rates = Rates(ours.states)
    for count, at_ns in ((counted(10), NOW - S), (counted(30), NOW)):
        list(ours.seen(look(count, at_ns=at_ns)))
        rates.published(ours.states)
    rates.published(ours.states)
    found = status(ours, config().ports, rates.before, 42, NOW)
    assert found.ports[0].rate_bps == 8 * 2000
    list(ours.seen(look(SwitchUntrusted("tor", "its certificate has expired"))))
    found = status(ours, config().ports, rates.before, 42, NOW)
    assert (found.ports[0].rate_bps, found.ports[0].kind) == (0.0, "untrusted")
    samples = [one for metric in PortCollector(lambda: found).collect() for one in metric.samples]
    (problem,) = [one for one in samples if one.name == "xco_port_problem"]
    assert problem.labels["kind"] == "untrusted"


def test_a_reading_may_have_an_instant_of_its_own() -> None:
    ours = agent()
    list(ours.seen(look(replace(counted(1), read_ns=NOW - 7))))
    assert ours.states[0].read_ns == NOW - 7


def test_a_port_that_was_never_read_has_no_instant() -> None:
    gone = PortGone("eth1", "gone")
    found = seen_status(agent(), [gone, counted(1)], [gone, counted(1)])
    assert (found.ports[0].read_ns, found.ports[0].problem) == (0, "eth1: gone")
