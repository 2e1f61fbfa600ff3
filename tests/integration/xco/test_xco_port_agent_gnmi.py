"""gNMI against a real gRPC server: TLS as operators set it up, and streams that fail."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from gnmi_switch import Authority, GnmiSwitch, container, counters, grpc, leaf, serving, split
from port_agent_rig import (
    TO_H1,
    TO_STORE,
    agent,
    ask,
    controller,
    gnmi,
    rising,
    until,
    write_files,
)

from xco.errors import (
    PortError,
    PortUncounted,
    SwitchAway,
    SwitchGarbled,
    SwitchRefused,
    SwitchUntrusted,
)
from xco.ports.gnmi_paths import GnmiPort
from xco.ports.gnmi_stream import GnmiStream
from xco.ports.gnmi_tls import GnmiTarget
from xco.ports.reader import Counters, Reading

SAMPLE_NS = 50_000_000
EXPIRED = timedelta(days=-1)
E1, E2 = GnmiPort("Ethernet1"), GnmiPort("Ethernet2")


@contextmanager
def stream(port: int, *ports: GnmiPort, **target: Any) -> Iterator[GnmiStream]:
    made = GnmiStream(
        GnmiTarget(f"localhost:{port}", **(target or {"insecure": True})), ports or (E1,), SAMPLE_NS
    )
    try:
        yield made
    finally:
        made.close()


def problem(port: int, **target: Any) -> PortError:
    """Return the error of a switch that cannot be read."""
    with stream(port, **target) as reader, pytest.raises(PortError) as raised:
        reader.read()
    return raised.value


def assert_counted(*readings: Reading | None) -> None:
    """Check that each reading is of one sample, whichever: a busy machine may be late."""
    for one in readings:
        assert isinstance(one, Counters)
        assert (one.bytes, one.drops) == (100 * one.packets, 2)


@pytest.fixture
def ca(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def trusting(ca: Authority) -> dict[str, str]:
    return {"ca_file": str(ca.file)}


def test_a_switch_with_a_certificate_of_the_ca_is_read(ca: Authority) -> None:
    with (
        serving(GnmiSwitch(), ca.server(ca.issue("localhost"))) as port,
        stream(port, **trusting(ca)) as reader,
    ):
        assert_counted(*reader.read())


def test_a_certificate_for_another_name_needs_that_name(ca: Authority) -> None:
    with serving(GnmiSwitch(), ca.server(ca.issue("tor"))) as port:
        error = problem(port, **trusting(ca))
        assert isinstance(error, SwitchUntrusted)
        assert str(error).startswith(f"localhost:{port}: its certificate is for another name")
        assert "`tls_name`" in error.fix
        with stream(port, tls_name="tor", **trusting(ca)) as reader:
            assert reader.read()


def test_an_expired_certificate_is_named(ca: Authority) -> None:
    with serving(GnmiSwitch(), ca.server(ca.issue("localhost", EXPIRED))) as port:
        error = problem(port, **trusting(ca))
    assert isinstance(error, SwitchUntrusted)
    assert "has expired" in error.problem


def test_an_unknown_ca_is_named(ca: Authority, tmp_path: Path) -> None:
    with serving(GnmiSwitch(), ca.server(ca.issue("localhost"))) as port:
        for target in (trusting(Authority(tmp_path, "other")), {"insecure": False}):
            error = problem(port, **target)
            assert isinstance(error, SwitchUntrusted)
            assert "unknown CA" in error.problem
            assert "`ca_file`" in error.fix


def test_a_switch_without_tls_is_not_spoken_to_in_the_clear(ca: Authority) -> None:
    switch = GnmiSwitch()
    with serving(switch) as port:
        error = problem(port, **trusting(ca))
    assert isinstance(error, SwitchUntrusted)
    assert "does not speak TLS" in error.problem
    assert not switch.users


def test_a_switch_with_tls_and_an_agent_without_is_away(ca: Authority) -> None:
    with serving(GnmiSwitch(), ca.server(ca.issue("localhost"))) as port:
        assert isinstance(problem(port, insecure=True), SwitchAway)


def test_a_certificate_of_the_agent_is_asked_for(ca: Authority, tmp_path: Path) -> None:
    ours, foreign = ca.issue("agent"), Authority(tmp_path, "other").issue("agent")
    old = ca.issue("old", EXPIRED)
    with serving(GnmiSwitch(), ca.server(ca.issue("localhost"), clients=ca)) as port:
        for pair in (None, foreign, old):
            error = problem(port, **trusting(ca), **(as_client(pair) if pair else {}))
            assert isinstance(error, SwitchUntrusted)
            assert "`cert_file`" in error.fix
        with stream(port, **trusting(ca), **as_client(ours)) as reader:
            assert reader.read()


def as_client(pair: Any) -> dict[str, str]:
    return {"cert_file": str(pair.cert), "cert_key_file": str(pair.key)}


def test_a_certificate_that_is_renewed_is_taken_without_a_restart(ca: Authority) -> None:
    old = ca.issue("agent", EXPIRED)
    with (
        serving(GnmiSwitch(), ca.server(ca.issue("localhost"), clients=ca)) as port,
        stream(port, **trusting(ca), **as_client(old)) as reader,
    ):
        with pytest.raises(SwitchUntrusted):
            reader.read()
        ca.issue("agent")
        assert reader.read()
        reader.close()
        old.key.unlink()
        with pytest.raises(SwitchUntrusted, match="No such file"):
            reader.read()


def test_a_ca_that_changes_under_a_stream_counts_from_the_next_connection(
    ca: Authority, tmp_path: Path
) -> None:
    switch, old = GnmiSwitch(), ca.server(ca.issue("localhost"), clients=ca)
    files = {**trusting(ca), **as_client(ca.issue("agent"))}
    with ExitStack() as first:
        port = first.enter_context(serving(switch, old))
        with stream(port, **files) as reader:
            assert_counted(*reader.read())
            new = Authority(tmp_path)  # the same files: another CA, and a certificate of it
            new.issue("agent")
            for _ in range(5):
                reader.read()
            assert len(switch.subscribed) == 1
            switch.stopping.set()
            with pytest.raises(SwitchAway, match="ended the stream"):
                until(lambda: reader.read() and False, "the end")
            with pytest.raises(SwitchUntrusted, match="another CA of the same name"):
                reader.read()  # the switch still has its old certificate
            first.close()
            with serving(switch, new.server(new.issue("localhost"), clients=new), port):
                assert_counted(*reader.read())


def test_the_user_and_the_password_of_a_file_open_the_stream(ca: Authority, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.touch(mode=0o600)
    secret.write_text("hush\n")
    switch = GnmiSwitch()
    with (
        serving(switch, ca.server(ca.issue("localhost"))) as port,
        stream(port, username="xco", password_file=str(secret), **trusting(ca)) as reader,
    ):
        reader.read()
    assert (switch.users[0]["username"], switch.users[0]["password"]) == ("xco", "hush")


def test_one_stream_has_all_ports() -> None:
    switch = GnmiSwitch()
    with serving(switch) as port, stream(port, E1, E2) as reader:
        assert_counted(*reader.read())
        later = reader.read()
        assert any(isinstance(one, Counters) and one.packets > 1 for one in later)
    (wanted,) = switch.subscribed
    assert [one.sample_interval for one in wanted.subscription] == [SAMPLE_NS] * 2
    assert not switch.gets


def test_a_sample_may_come_in_several_notifications() -> None:
    with serving(GnmiSwitch(split)) as port, stream(port) as reader:
        for one in (read for _ in range(5) for read in reader.read()):
            assert_counted(one)


@pytest.mark.parametrize("code", ["UNIMPLEMENTED", "INVALID_ARGUMENT", "NOT_FOUND"])
def test_a_switch_that_refuses_streams_is_asked_with_get(code: str) -> None:
    switch = GnmiSwitch(refusal=getattr(grpc.StatusCode, code))
    with serving(switch) as port, stream(port) as reader:
        assert reader.read() == [Counters(1, 100, drops=2)]
        assert reader.read() == [Counters(2, 200, drops=2)]
    assert (len(switch.subscribed), switch.gets) == (1, 2)


def huge(path: Any, _count: int) -> Any:
    return [[container(path, "x" * (2 << 20))]]


def test_an_answer_above_the_limit_is_said_to_be_too_large() -> None:
    with serving(GnmiSwitch(huge)) as port:
        assert "its answer is too large" in problem(port, insecure=True).problem


def test_a_switch_that_refuses_the_user_is_not_asked_with_get() -> None:
    switch = GnmiSwitch(refusal=grpc.StatusCode.UNAUTHENTICATED)
    with serving(switch) as port:
        assert "UNAUTHENTICATED" in str(problem(port))
    assert not switch.gets


def test_logins_that_are_refused_after_the_fallback_to_get_end_it() -> None:
    switch = GnmiSwitch(refusal=grpc.StatusCode.UNIMPLEMENTED)
    with serving(switch) as port, stream(port, E1, E2) as reader:
        reader.read()
        switch.get_refusal = grpc.StatusCode.UNAUTHENTICATED
        for _ in range(2):
            with pytest.raises(SwitchRefused, match="UNAUTHENTICATED"):
                reader.read()
    assert len(switch.subscribed) == 2


def test_the_agent_slows_down_for_a_switch_that_refuses_its_logins(tmp_path: Path) -> None:
    switch = GnmiSwitch(get_refusal=grpc.StatusCode.UNAUTHENTICATED)
    with controller(tmp_path) as there, serving(switch) as port:
        ports = gnmi(port, "e1", "store", 'insecure = true\nmode = "get"')
        with agent(tmp_path, there.address, ports) as ours:
            until(lambda: ours.events("port_unreadable"), "the refusal")
            before, began = switch.gets, time.monotonic()
            time.sleep(3)
            assert switch.gets - before <= (time.monotonic() - began) / 0.5


def test_a_stream_that_ends_is_an_error_and_opens_again() -> None:
    switch = GnmiSwitch()
    with serving(switch) as port, stream(port) as reader:
        reader.read()
        switch.stopping.set()
        with pytest.raises(SwitchAway, match="ended the stream"):
            until(lambda: reader.read() and False, "the end")
        switch.stopping.clear()
        assert isinstance(reader.read()[0], Counters)
    assert len(switch.subscribed) == 2


def test_a_silent_stream_is_stale_and_opened_again() -> None:
    switch = GnmiSwitch()
    with serving(switch) as port, stream(port) as reader:
        reader.read()
        switch.silent.set()
        with pytest.raises(SwitchAway, match="no update for 1 s"):
            until(lambda: reader.read() and False, "the silence")
        switch.silent.clear()
        assert isinstance(reader.read()[0], Counters)
    assert len(switch.subscribed) == 2


@pytest.mark.parametrize("error_s", [-86400, 86400])
def test_a_switch_with_a_wrong_clock_is_not_stale(error_s: int) -> None:
    switch = GnmiSwitch(clock_error_ns=error_s * 1_000_000_000)
    with serving(switch) as port, stream(port) as reader:
        seen = [one for _ in range(30) for one in reader.read() if isinstance(one, Counters)]
    assert len(seen) == 30
    assert [one.read_ns for one in seen] == sorted({one.read_ns for one in seen})


def odd(path: Any, count: int) -> Any:
    """Return sound counters for the first port, and for the second a text as its octets."""
    if path.elem[1].key["name"] == "Ethernet1":
        return [[leaf(path, "no-such-counter", 1), container(path, counters(count))]]
    return [[container(path, {**counters(count), "out-octets": "many"})]]


def test_a_wrong_type_is_an_error_of_its_port_alone() -> None:
    with serving(GnmiSwitch(odd)) as port, stream(port, E1, E2) as reader:
        sound, garbled = reader.read()
        assert_counted(sound)
        assert isinstance(garbled, SwitchGarbled)
        assert "out-octets" in str(garbled)


def astray(path: Any, count: int) -> Any:
    """Return the counters of another interface for the second port."""
    if path.elem[1].key["name"] == "Ethernet2":
        path.elem[1].key["name"] = "Ethernet9"
    return [[container(path, counters(count))]]


def test_a_path_that_was_not_requested_is_named() -> None:
    with serving(GnmiSwitch(astray)) as port, stream(port, E1, E2) as reader:
        sound, missing = reader.read()
        assert isinstance(sound, Counters)
        assert isinstance(missing, PortUncounted)
        named = until(lambda: _problem(reader, "Ethernet9"), "the stray path")
        assert "not requested" in named


def _problem(reader: GnmiStream, word: str) -> str:
    texts = (str(one) for one in reader.read() if isinstance(one, PortError))
    return next((text for text in texts if word in text), "")


def test_the_agent_follows_a_switch_that_restarts(tmp_path: Path, ca: Authority) -> None:
    trusted = ca.server(ca.issue("localhost"))
    with controller(tmp_path) as there, serving(GnmiSwitch()) as other, ExitStack() as first:
        port = first.enter_context(serving(GnmiSwitch(), trusted))
        ports = gnmi(port, "e1", "store", 'ca_file = "ca.pem"')
        ports += gnmi(other, "e2", "h1", "insecure = true")
        with agent(tmp_path, there.address, ports) as ours:
            until(rising(there, TO_STORE), "the first counters")
            first.close()
            (event,) = until(lambda: ours.events("port_unreadable"), "the loss")
            assert "certificate is" not in event["problem"]
            until(rising(there, TO_H1), "the other switch")
            with serving(GnmiSwitch(), trusted, port):
                until(rising(there, TO_STORE), "the return")
                until(lambda: ours.events("port_readable"), "the return in the log")
        heard = there.ports(TO_STORE)
        assert [one.read_ns for one in heard] == sorted({one.read_ns for one in heard})
    assert not there.refused


def test_an_untrusted_switch_is_named_in_log_and_check_and_delays_no_other(
    tmp_path: Path, ca: Authority
) -> None:
    bad = ca.server(ca.issue("localhost", EXPIRED))
    trust = 'ca_file = "ca.pem"'
    with (
        controller(tmp_path) as there,
        serving(GnmiSwitch(), bad) as expired,
        serving(GnmiSwitch()) as other,
    ):
        ports = gnmi(expired, "e1", "store", trust) + gnmi(other, "e2", "h1", "insecure = true")
        with agent(tmp_path, there.address, ports) as ours:
            (event,) = until(lambda: ours.events("port_unreadable"), "the certificate")
            assert event["port"] == "tor -> store"
            assert "renew the switch's certificate" in event["problem"]
            until(rising(there, TO_H1), "the other port")
            assert "has expired" in until(lambda: ours.ask("status").stdout, "status")
        checked = ask(tmp_path / "xco.toml", "check", "--json")
        assert checked.returncode == 1, checked.stderr
        assert "has expired" in checked.stdout


def test_a_password_that_others_can_read_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hush")
    secret.chmod(0o640)
    keys = 'username = "xco"\npassword_file = "password"'
    write_files(tmp_path, "127.0.0.1:9", gnmi(1, "e1", "store", keys))
    answer = ask(tmp_path / "xco.toml", "check")
    assert answer.returncode == 2
    assert f"{secret}: other users can read it (chmod 600 {secret})" in answer.stderr
