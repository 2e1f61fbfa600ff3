"""The messages: what is understood, and one typed refusal for everything else."""

import contextlib

import msgspec
import pytest

from xtc.errors import Refused
from xtc.lease import Kind
from xtc.wire import (
    MAX_MESSAGE,
    VERSION,
    Activate,
    Answer,
    Deactivate,
    Envelope,
    HostDrops,
    Limit,
    Pause,
    Refusal,
    Reply,
    Request,
    Resume,
    Retune,
    Status,
    Telemetry,
    decode_reply,
    decode_request,
    decode_telemetry,
    encode,
    request_id,
)

REQUESTS = [
    Activate("a", 2e4, 3, 9, 60.0, Kind.PUNISHMENT),
    Retune("a", 2e4),
    Pause("a"),
    Resume("a"),
    Deactivate(None),
    Limit("a", None),
    Status(),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_arrives_as_it_was_sent(request_: Request) -> None:
    envelope = Envelope(request_, id="7")
    assert decode_request(encode(envelope)) == envelope


def test_the_format_is_the_published_one() -> None:
    """A golden message: whoever changes it breaks policers in the field."""
    raw = b'{"version":1,"request":{"type":"activate","vr":"edge1","setpoint_pps":20000}}'
    assert decode_request(raw) == Envelope(Activate("edge1", 20000.0))


def activate(fields: str) -> bytes:
    return b'{"version":1,"request":{"type":"activate","vr":"a",%s}}' % fields.encode()


@pytest.mark.parametrize(
    ("raw", "code", "field"),
    [
        (b"", "bad_message", "message"),
        (b"hello", "bad_message", "message"),
        (b"\xff\xfe", "bad_message", "message"),
        (b"[]", "bad_message", "message"),
        (b"null", "bad_message", "message"),
        (b"{}", "bad_message", "message"),
        (b'{"version":1}', "bad_message", "message"),
        (b'{"version":2}', "version", "version"),
        (b'{"version":0,"request":{"type":"status"}}', "version", "version"),
        (b'{"version":"1","request":{"type":"status"}}', "bad_message", "$.version"),
        (b'{"version":' + b"9" * 5000 + b"}", "bad_message", "$.version"),
        (b'{"version":1,"request":{"type":"explode"}}', "bad_message", "$.request.type"),
        (b'{"version":1,"request":{"type":"status"},"more":1}', "bad_message", "message"),
        (b'{"version":1,"request":{"type":"status","more":1}}', "bad_message", "$.request"),
        (b'{"version":1,"id":"' + b"i" * 65 + b'","request":{}}', "bad_message", "$.id"),
        (b'{"version":1,"request":' + b"[" * 30000, "bad_message", "message"),
        (b'{"a":' * 10000, "bad_message", "message"),
        (activate('"setpoint_pps":NaN'), "bad_message", "message"),
        (activate('"setpoint_pps":Infinity'), "bad_message", "message"),
        (activate('"setpoint_pps":1e999'), "bad_message", "$.request.setpoint_pps"),
        (activate('"setpoint_pps":0'), "bad_message", "$.request.setpoint_pps"),
        (activate('"setpoint_pps":-5'), "bad_message", "$.request.setpoint_pps"),
        (activate('"setpoint_pps":1e10'), "bad_message", "$.request.setpoint_pps"),
        (activate('"setpoint_pps":"20kpps"'), "bad_message", "$.request.setpoint_pps"),
        (activate('"setpoint_pps":1,"epoch":-1'), "bad_message", "$.request.epoch"),
        (activate('"setpoint_pps":1,"epoch":1.5'), "bad_message", "$.request.epoch"),
        (activate('"setpoint_pps":1,"epoch":' + "9" * 30), "bad_message", "$.request.epoch"),
        (activate('"setpoint_pps":1,"sequence":true'), "bad_message", "$.request.sequence"),
        (activate('"setpoint_pps":1,"ttl_s":0'), "bad_message", "$.request.ttl_s"),
        (activate('"setpoint_pps":1,"ttl_s":1e9'), "bad_message", "$.request.ttl_s"),
        (activate('"setpoint_pps":1,"kind":"gift"'), "bad_message", "$.request.kind"),
        (b" " * (MAX_MESSAGE + 1), "too_large", "message"),
    ],
)
def test_everything_else_is_refused_by_field(raw: bytes, code: str, field: str) -> None:
    with pytest.raises(Refused) as caught:
        decode_request(raw)
    assert (caught.value.code, caught.value.field) == (code, field)


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ('"setpoint_pps":1e-3', True),
        ('"setpoint_pps":1e9', True),
        ('"setpoint_pps":1000000001', False),
        ('"setpoint_pps":1,"epoch":0,"sequence":0', True),
        (f'"setpoint_pps":1,"epoch":{2**62 - 1},"sequence":{2**62 - 1}', True),
        (f'"setpoint_pps":1,"epoch":{2**62}', False),
        (f'"setpoint_pps":1,"sequence":{2**62}', False),
    ],
)
def test_numbers_are_taken_up_to_their_bounds(fields: str, taken: bool) -> None:
    with contextlib.nullcontext() if taken else pytest.raises(Refused, match="<="):
        decode_request(activate(fields))


@pytest.mark.parametrize(
    "name", ["", "-a", "a b", "a\\n", "../a", "a/b", "a;rm", "a$(x)", "é", "a" * 65, "a\\u0000"]
)
def test_a_name_is_no_place_for_tricks(name: str) -> None:
    raw = f'{{"version":{VERSION},"request":{{"type":"pause","vr":"{name}"}}}}'.encode()
    with pytest.raises(Refused) as caught:
        decode_request(raw)
    assert caught.value.field == "$.request.vr"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"version":1,"id":"7","request":{"type":"explode"}}', "7"),
        (b'{"version":2,"id":"7"}', "7"),
        (b'{"id":7}', ""),
        (b'{"id":"' + b"i" * 65 + b'"}', ""),
        (b"[" * 60000, ""),
        (b'{"id":"\xff"}', ""),
    ],
)
def test_even_a_refused_request_has_its_id(raw: bytes, expected: str) -> None:
    assert request_id(raw) == expected


@pytest.mark.parametrize("result", [Answer(()), Refusal("code", "field", "problem", "fix")])
def test_a_reply_arrives_as_it_was_sent(result: Answer | Refusal) -> None:
    assert decode_reply(encode(Reply(result, id="7"))) == Reply(result, id="7")


def test_telemetry_arrives_as_it_was_sent() -> None:
    assert decode_telemetry(encode(Telemetry(1.5, 3, ()))) == Telemetry(1.5, 3, ())


def test_what_the_host_drops_arrives_as_it_was_sent() -> None:
    drops = HostDrops({"eth0": 1.5}, None)
    telemetry = Telemetry(1.5, 3, (), drops=drops)
    assert decode_telemetry(encode(telemetry)) == telemetry
    assert decode_reply(encode(Reply(Answer((), drops)))).result == Answer((), drops)


def test_a_daemon_that_does_not_tell_what_it_drops_is_understood() -> None:
    """Golden messages of the daemons before."""
    raw = b'{"at":1.5,"tick":3,"routers":[],"version":1}'
    assert decode_telemetry(raw) == Telemetry(1.5, 3, ())
    raw = b'{"result":{"type":"answer","routers":[]},"version":1,"id":""}'
    assert decode_reply(raw).result == Answer(())


class EarlierTelemetry(msgspec.Struct):
    """As policers before knew it."""

    at: float
    tick: int
    routers: tuple[dict[str, object], ...]
    version: int = VERSION


def test_a_policer_that_does_not_know_of_drops_reads_on() -> None:
    raw = encode(Telemetry(1.5, 3, (), drops=HostDrops({"eth0": 1.5}, 2.0)))
    assert msgspec.json.decode(raw, type=EarlierTelemetry) == EarlierTelemetry(1.5, 3, ())


@pytest.mark.parametrize("drops", ['{"cards":{"eth0":-1},"backlog":null}', '{"cards":{}}', "3"])
def test_drops_that_cannot_be_are_refused(drops: str) -> None:
    raw = f'{{"at":1,"tick":1,"routers":[],"drops":{drops}}}'.encode()
    with pytest.raises(Refused, match=r"drops"):
        decode_telemetry(raw)


@pytest.mark.parametrize("raw", [b"", b"{}", b"\xff", b"[" * 5000])
def test_a_foreign_answer_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused):
        decode_reply(raw)
    with pytest.raises(Refused):
        decode_telemetry(raw)
