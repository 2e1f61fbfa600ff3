"""Batches: carried out one by one, in their order; one that is refused stops no other."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_rig import Rig, configured_rig

from xtc.daemon.client import _answer
from xtc.errors import Refused, Transient
from xtc.lease import Kind
from xtc.state.journal import Ledger
from xtc.wire import (
    MAX_BATCH,
    Activate,
    Batch,
    Change,
    Deactivate,
    Envelope,
    Limit,
    Outcomes,
    Pause,
    Refusal,
    Reply,
    Resume,
    Retune,
    decode_reply,
    decode_request,
    encode,
)

names = st.sampled_from(["a", "edge-1", "b" * 64])
counts = st.integers(0, 2**62 - 1)
rates = st.floats(0, 1e9, exclude_min=True)
ttls = st.none() | st.floats(0.001, 366 * 86400)
changes = st.one_of(
    st.builds(Activate, names, rates, counts, counts, ttls, st.sampled_from(Kind)),
    st.builds(Retune, names, rates, counts, counts, ttls, st.sampled_from(Kind)),
    st.builds(Pause, names),
    st.builds(Resume, names),
    st.builds(Deactivate, st.none() | names),
    st.builds(Limit, names, st.none() | rates, ttls, st.none() | counts),
)
refusals = st.none() | st.builds(Refusal, st.text(), st.text(), st.text(), st.text())


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return configured_rig(tmp_path, a=None, b=None, c=None)


def outcomes(rig: Rig, *requests: Change) -> list[str | None]:
    """Send a batch as its bytes; return the code of each refusal."""
    raw = encode(Envelope(Batch(requests), id="7"))
    reply = decode_reply(encode(rig.manager.handle(raw)))
    assert reply.id == "7"
    assert isinstance(reply.result, Outcomes)
    return [refusal and refusal.code for refusal in reply.result.refusals]


def test_all_are_carried_out(rig: Rig) -> None:
    assert outcomes(rig, *[Activate(vr, 20e3) for vr in "abc"]) == [None, None, None]
    rig.tick(8)
    assert all(rig.holds(vr, 20e3) for vr in "abc")


def test_one_that_is_refused_stops_no_other(rig: Rig) -> None:
    batch = (Activate("a", 2e4), Activate("x", 2e4), Retune("b", 2e4), Activate("c", 3e4))
    assert outcomes(rig, *batch) == [None, "unknown_router", "inactive", None]
    assert [rig.report(vr).setpoint_pps for vr in "abc"] == [2e4, None, 3e4]


def test_a_router_that_fails_stops_no_other(rig: Rig) -> None:
    rig.hold("a", 20e3)
    rig.hold("b", 20e3)
    rig.faults.errors["a", "restore"] = Transient("a", "busy")
    assert outcomes(rig, Deactivate("a"), Deactivate("b")) == ["not_released", None]
    assert rig.cap("a") is not None
    assert rig.cap("b") is None


def test_they_are_carried_out_in_their_order(rig: Rig) -> None:
    batch = [Activate("a", 1e4 + number, 1, number) for number in (1, 3, 2)]
    assert outcomes(rig, *batch) == [None, None, "stale_sequence"]
    assert rig.report("a").setpoint_pps == 1e4 + 3


def test_limits_of_a_batch_are_in_the_journal_by_one_write_before_the_first_is_set(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.tick(2)
    stored = []
    store = rig.journal.store

    def watched(ledger: Ledger) -> None:
        stored.append((dict(ledger.limits), dict(rig.limiter.limits)))
        store(ledger)

    monkeypatch.setattr(rig.journal, "store", watched)
    assert outcomes(rig, *[Limit(name, 1e3) for name in "abc"]) == [None] * 3
    assert stored == [({name: (f"{name}.0",) for name in "abc"}, {})]
    assert rig.limiter.limits == {f"{name}.0": 1e3 for name in "abc"}


def test_a_limit_that_a_batch_may_not_set_is_not_waited_for(rig: Rig) -> None:
    rig.tick(2)
    rig.ask(Activate("a", 20e3, epoch=5))
    assert outcomes(rig, Limit("a", 1e3, epoch=4), Limit("b", 1e3)) == ["stale_epoch", None]
    rig.tick(2)
    assert rig.report("a").offered_pps is not None
    assert rig.journal.ledger.limits == {"b": ("b.0",)}


def test_an_empty_batch_has_no_outcomes(rig: Rig) -> None:
    assert outcomes(rig) == []


def test_a_batch_that_is_too_long_is_refused_as_a_whole(rig: Rig) -> None:
    raw = encode(Envelope(Batch(tuple([Activate("a", 2e4)] * (MAX_BATCH + 1))), id="7"))
    reply = rig.manager.handle(raw)
    assert isinstance(reply.result, Refusal)
    assert (reply.result.code, reply.result.field) == ("bad_message", "$.request.requests")
    assert not rig.report("a").active


@pytest.mark.parametrize(
    "inner",
    [b'{"type":"status"}', b'{"type":"batch","requests":[]}', b'{"type":"activate","vr":"a"}'],
)
def test_one_that_cannot_be_read_refuses_the_whole_by_its_place(rig: Rig, inner: bytes) -> None:
    good = b'{"type":"activate","vr":"a","setpoint_pps":20000}'
    raw = b'{"version":1,"request":{"type":"batch","requests":[%s,%s]}}' % (good, inner)
    reply = rig.manager.handle(raw)
    assert isinstance(reply.result, Refusal)
    assert reply.result.code == "bad_message"
    assert reply.result.field.startswith("$.request.requests[")
    assert not rig.report("a").active


def test_the_format_is_the_published_one() -> None:
    """A golden message: whoever changes it breaks policers in the field."""
    raw = (
        b'{"version":1,"request":{"type":"batch","requests":['
        b'{"type":"activate","vr":"edge1","setpoint_pps":20000},'
        b'{"type":"limit","vr":"edge1","rate_pps":22000,"ttl_s":15,"epoch":3}]}}'
    )
    requests = (Activate("edge1", 2e4), Limit("edge1", 2.2e4, 15.0, 3))
    assert decode_request(raw) == Envelope(Batch(requests))


@given(requests=st.lists(changes, max_size=20))
def test_every_batch_arrives_as_it_was_sent(requests: list[Change]) -> None:
    envelope = Envelope(Batch(tuple(requests)))
    assert decode_request(encode(envelope)) == envelope


@given(told=st.lists(refusals, max_size=20))
def test_outcomes_arrive_as_they_were_sent(told: list[Refusal | None]) -> None:
    reply = Reply(Outcomes(tuple(told)), id="7")
    assert decode_reply(encode(reply)) == reply


def test_another_version_of_a_reply_is_refused() -> None:
    with pytest.raises(Refused, match="9 is not supported"):
        decode_reply(encode(Reply(Outcomes(()), version=9)))


def test_a_client_that_sent_no_batch_takes_no_outcomes() -> None:
    refusal = _answer(Outcomes((None,)))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "bad_message"
