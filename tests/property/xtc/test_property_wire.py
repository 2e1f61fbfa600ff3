"""The messages for any bytes: an envelope or a refusal, and never anything else."""

import contextlib
import json

from hypothesis import given
from hypothesis import strategies as st

from xtc.errors import Refused
from xtc.lease import Kind
from xtc.wire import (
    VERSION,
    Activate,
    Deactivate,
    Envelope,
    Limit,
    Pause,
    Refusal,
    Resume,
    Retune,
    Status,
    decode_reply,
    decode_request,
    decode_telemetry,
    encode,
    request_id,
)

names = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._:-]{0,63}\Z")
rates = st.floats(0, 1e9, exclude_min=True)
counts = st.integers(0, 2**62 - 1)
ttls = st.none() | st.floats(0.001, 366 * 86400)
orders = (names, rates, counts, counts, ttls, st.sampled_from(Kind))
in_bits = (names, st.none(), *orders[2:], st.floats(1e3, 1e12))
requests = st.one_of(
    st.builds(Activate, *orders),
    st.builds(Retune, *orders),
    st.builds(Activate, *in_bits),
    st.builds(Retune, *in_bits),
    st.builds(Pause, names),
    st.builds(Resume, names),
    st.builds(Deactivate, st.none() | names),
    st.builds(Limit, names, st.none() | rates),
    st.builds(Status, st.none() | names),
)
envelopes = st.builds(
    Envelope,
    requests,
    version=st.just(VERSION),
    id=st.text(st.characters(codec="utf-8"), max_size=64),
)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "vr", "version", "request", "id", "x"]), inner)
    ),
    max_leaves=8,
)


def total(raw: bytes) -> None:
    """Decode, and let nothing but a refusal out that can itself be sent."""
    try:
        decode_request(raw)
    except Refused as refused:
        encode(Refusal(refused.code, refused.field, refused.problem))
    assert len(request_id(raw)) <= 64


@given(envelope=envelopes)
def test_every_request_arrives_as_it_was_sent(envelope: Envelope) -> None:
    assert decode_request(encode(envelope)) == envelope


@given(raw=st.binary(max_size=200))
def test_any_bytes_are_a_request_or_refused(raw: bytes) -> None:
    total(raw)


@given(document=documents, request=documents)
def test_any_document_is_a_request_or_refused(document: object, request: object) -> None:
    total(json.dumps(document).encode())
    total(json.dumps({"version": VERSION, "request": request}).encode())


@given(envelope=envelopes, at=st.integers(0, 300), junk=st.binary(min_size=1, max_size=3))
def test_any_damage_is_a_request_or_refused(envelope: Envelope, at: int, junk: bytes) -> None:
    raw = encode(envelope)
    total(raw[:at] + junk + raw[at + len(junk) :])
    total(raw[:at])


@given(raw=st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_refused(raw: bytes) -> None:
    for decode in (decode_reply, decode_telemetry):
        with contextlib.suppress(Refused):
            decode(raw)
