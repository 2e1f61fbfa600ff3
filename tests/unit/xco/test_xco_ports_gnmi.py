"""Counters over gNMI: what OpenConfig's models say, in the forms in which servers write it."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

grpc = pytest.importorskip("grpc", reason="pygnmi is not installed")
pb2 = pytest.importorskip("pygnmi.spec.v080.gnmi_pb2", reason="pygnmi is not installed")
services = pytest.importorskip("pygnmi.spec.v080.gnmi_pb2_grpc", reason="pygnmi is not installed")

from xco.errors import (  # noqa: E402  after the check that pygnmi is there
    ConfigError,
    PortGone,
    PortUncounted,
    SwitchAway,
    SwitchGarbled,
    SwitchRefused,
)
from xco.ports.factory import Source  # noqa: E402
from xco.ports.gnmi import GnmiReader  # noqa: E402
from xco.ports.gnmi_paths import GnmiPort  # noqa: E402
from xco.ports.gnmi_tls import GnmiTarget  # noqa: E402
from xco.ports.poll import looked  # noqa: E402
from xco.ports.reader import Counters  # noqa: E402

COUNTERS = {
    "openconfig-interfaces:out-octets": "12345678901234",
    "out-unicast-pkts": "100",
    "out-multicast-pkts": "20",
    "out-broadcast-pkts": 3,
    "out-discards": "7",
    "last-clear": "2026-01-01T00:00:00Z",
    "flaps": True,
}
QUEUE = {"name": "lossless", "transmit-pkts": "11", "transmit-octets": "2200", "dropped-pkts": "4"}
MARKS = "/vendor:qos/port[name=Ethernet1/1]/state/marked-pkts"
PORT = GnmiPort("Ethernet1/1")


class Switch(services.gNMIServicer):  # type: ignore[misc]
    """Answers Get as its test says: one notification for each path."""

    def __init__(self) -> None:
        self.values: Callable[[str], Any] = lambda _: COUNTERS
        self.requests: list[Any] = []
        self.users: list[dict[str, str]] = []
        self.address = ""

    def Get(self, request: Any, context: Any) -> Any:  # noqa: N802  the service names it
        self.requests.append(request)
        self.users.append(dict(context.invocation_metadata()))
        answer = pb2.GetResponse()
        for path in request.path:
            value = self.values(words(path))
            if isinstance(value, grpc.StatusCode):
                context.abort(value, "as the test says")
            updates = value if isinstance(value, list) else [container(path, value)]
            answer.notification.add().update.extend(updates)
        return answer


def words(path: Any) -> str:
    """Return a path as text."""
    keys = ("".join(f"[{key}={value}]" for key, value in each.key.items()) for each in path.elem)
    return "".join(f"/{each.name}{key}" for each, key in zip(path.elem, keys, strict=True))


def container(path: Any, value: Any) -> Any:
    """Return an update with JSON of a whole container, or of a leaf."""
    return pb2.Update(path=path, val=pb2.TypedValue(json_ietf_val=json.dumps(value).encode()))


def leaf(name: str, value: int) -> Any:
    """Return an update of one leaf as a number of its own."""
    path = pb2.Path(elem=[pb2.PathElem(name="counters"), pb2.PathElem(name=name)])
    return pb2.Update(path=path, val=pb2.TypedValue(uint_val=value))


@pytest.fixture
def switch() -> Iterator[Switch]:
    made = Switch()
    server = grpc.server(ThreadPoolExecutor(2))
    services.add_gNMIServicer_to_server(made, server)
    made.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield made
    server.stop(None).wait()


def read(switch: Switch, *ports: GnmiPort, **target: Any) -> Any:
    """Read ports of a switch once."""
    reader = GnmiReader(GnmiTarget(switch.address, insecure=True, **target), ports, timeout_s=10.0)
    try:
        return reader.read()
    finally:
        reader.close()


def test_an_interface_is_read_from_its_published_path(switch: Switch) -> None:
    assert read(switch, PORT) == [Counters(123, 12345678901234, drops=7)]
    (request,) = switch.requests
    (path,) = request.path
    assert words(path) == "/interfaces/interface[name=Ethernet1/1]/state/counters"
    assert request.type == pb2.GetRequest.STATE


def test_a_queue_is_read_from_its_published_path(switch: Switch) -> None:
    switch.values = lambda _: QUEUE
    assert read(switch, GnmiPort("Ethernet1/1", "lossless")) == [Counters(11, 2200, drops=4)]
    assert words(switch.requests[0].path[0]) == (
        "/qos/interfaces/interface[interface-id=Ethernet1/1]"
        "/output/queues/queue[name=lossless]/state"
    )


def test_leaves_one_by_one_are_as_good_as_json(switch: Switch) -> None:
    switch.values = lambda _: [leaf("out-octets", 5), leaf("out-pkts", 6), leaf("in-octets", 9)]
    assert read(switch, PORT) == [Counters(6, 5)]


def test_a_vendors_counter_of_marks_is_read_with_the_port(switch: Switch) -> None:
    switch.values = lambda path: "42" if "marked" in path else COUNTERS
    (reading,) = read(switch, GnmiPort("Ethernet1/1", marks=MARKS))
    assert reading == Counters(123, 12345678901234, 42, 7, counts_marks=True)
    marks = switch.requests[0].path[1]
    assert marks.origin == "vendor"
    assert marks.elem[1].key["name"] == "Ethernet1/1"


def test_one_missing_port_leaves_the_others_alone(switch: Switch) -> None:
    def partly(path: str) -> Any:
        return grpc.StatusCode.NOT_FOUND if "Ethernet2" in path else COUNTERS

    switch.values = partly
    gone, there = read(switch, GnmiPort("Ethernet2"), PORT)
    assert isinstance(gone, PortGone)
    assert str(gone).startswith("Ethernet2: as the test says")
    assert isinstance(there, Counters)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, PortUncounted),
        ({"out-octets": "5"}, PortUncounted),
        ({"out-octets": "-5", "out-pkts": "1"}, PortUncounted),
        ({"out-octets": str(2**64), "out-pkts": "1"}, SwitchGarbled),
        ([pb2.Update(val=pb2.TypedValue(json_val=b"{"))], SwitchGarbled),
        ([pb2.Update(val=pb2.TypedValue(ascii_val="5"))], PortUncounted),
        (grpc.StatusCode.INTERNAL, SwitchRefused),
    ],
)
def test_what_is_no_counter_is_a_typed_error(switch: Switch, value: Any, expected: type) -> None:
    switch.values = lambda _: value
    (reading,) = read(switch, PORT)
    assert type(reading) is expected


@pytest.mark.parametrize("code", ["UNAUTHENTICATED", "PERMISSION_DENIED"])
def test_a_refused_login_is_of_the_switch_and_slows_the_agent_down(
    switch: Switch, tmp_path: Path, code: str
) -> None:
    password = tmp_path / "password"
    password.touch(mode=0o600)
    target = GnmiTarget(switch.address, "reader", str(password), insecure=True)
    reader = GnmiReader(target, [PORT, GnmiPort("Ethernet2")], timeout_s=10.0)
    switch.values = lambda _: getattr(grpc.StatusCode, code)
    look, away = looked(Source("tor", reader, (0, 1)))
    assert away
    for one in look.readings.values():
        assert type(one) is SwitchRefused
        assert str(one).startswith(f"{switch.address}: {code}")
    switch.values = lambda _: COUNTERS
    password.write_text("new")
    reader.read()
    assert switch.users[-1]["password"] == "new"
    reader.close()


def test_one_refused_port_leaves_the_others_alone(switch: Switch) -> None:
    denied = grpc.StatusCode.PERMISSION_DENIED
    switch.values = lambda path: denied if "Ethernet2" in path else COUNTERS
    refused, there = read(switch, GnmiPort("Ethernet2"), PORT)
    assert isinstance(refused, SwitchRefused)
    assert isinstance(there, Counters)


@pytest.mark.parametrize("value", [{"a": 1, "b": 2}, "many", {}, str(2**64)])
def test_marks_that_are_not_one_number_are_garbled(switch: Switch, value: Any) -> None:
    switch.values = lambda path: value if "marked" in path else COUNTERS
    (reading,) = read(switch, GnmiPort("Ethernet1/1", marks=MARKS))
    assert isinstance(reading, SwitchGarbled)


def test_user_and_password_go_with_each_request(switch: Switch, tmp_path: Any) -> None:
    (tmp_path / "password").write_text("secret\n")
    (tmp_path / "password").chmod(0o600)
    read(switch, PORT, username="reader", password_file=str(tmp_path / "password"))
    assert switch.users[0]["username"] == "reader"
    assert switch.users[0]["password"] == "secret"


def test_a_switch_that_is_not_there_is_away() -> None:
    reader = GnmiReader(GnmiTarget("127.0.0.1:1", insecure=True), [PORT], timeout_s=5.0)
    with pytest.raises(SwitchAway, match=r"^127\.0\.0\.1:1: "):
        reader.read()
    reader.close()


def test_a_switch_that_does_not_answer_is_away_in_time(switch: Switch) -> None:
    done = Event()

    def late(_: str) -> Any:
        done.wait()
        return COUNTERS

    switch.values = late
    reader = GnmiReader(GnmiTarget(switch.address, insecure=True), [PORT], timeout_s=0.2)
    with pytest.raises(SwitchAway):
        reader.read()
    done.set()
    reader.close()


@pytest.mark.parametrize("path", ["/", "/qos/port[name=a=b]/x"])
def test_a_path_that_is_none_is_an_error_of_the_settings(path: str) -> None:
    with pytest.raises(ConfigError, match="is no path"):
        GnmiReader(GnmiTarget("127.0.0.1:1", insecure=True), [GnmiPort("e", marks=path)])


def test_a_file_that_cannot_be_read_is_an_error_of_the_settings() -> None:
    with pytest.raises(ConfigError, match=r"/nonexistent/ca\.pem: No such file"):
        GnmiReader(GnmiTarget("127.0.0.1:1", ca_file="/nonexistent/ca.pem"), [PORT])
