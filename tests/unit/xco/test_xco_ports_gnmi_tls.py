"""What failures of a connection mean, and files of certificates, keys and passwords."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gnmi_switch import Authority, grpc

from xco.errors import ConfigError, PortGone, SwitchAway, SwitchRefused, SwitchUntrusted
from xco.ports.gnmi_tls import GnmiTarget, failure, metadata, opened, reopened

NOT = "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:6030: "
FAILED = NOT + "Tls handshake failed: CERTIFICATE_VERIFY_FAILED: "


@dataclass
class Failed:
    """What gRPC raises."""

    said: str
    status: str = "UNAVAILABLE"

    def code(self) -> Any:
        return getattr(grpc.StatusCode, self.status)

    def details(self) -> str:
        return self.said


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (FAILED + "certificate has expired", "has expired"),
        (FAILED + "certificate is not yet valid", "not yet valid"),
        (FAILED + "unable to get local issuer certificate", "unknown CA"),
        (FAILED + "self-signed certificate", "unknown CA"),
        (NOT + "BAD_SIGNATURE: certificate signature failure", "another CA of the same name"),
        (NOT + "Hostname Verification Check failed.", "another name"),
        (NOT + "WRONG_VERSION_NUMBER", "does not speak TLS"),
        (NOT + "SSLV3_ALERT_BAD_CERTIFICATE", "refuses the agent's certificate"),
        (NOT + "Socket closed", "closes the connection"),
    ],
)
def test_a_failure_of_tls_names_the_switch_its_cause_and_a_fix(said: str, problem: str) -> None:
    error = failure(GnmiTarget("tor:6030"), "e1", Failed(said))
    assert isinstance(error, SwitchUntrusted)
    assert str(error).startswith("tor:6030: ")
    assert problem in error.problem
    assert error.fix


@pytest.mark.parametrize("said", ["Socket closed", NOT + "Connection refused", ""])
def test_a_switch_that_goes_is_no_matter_of_certificates(said: str) -> None:
    assert type(failure(GnmiTarget("tor:6030"), "e1", Failed(said))) is SwitchAway


def test_without_encryption_nothing_is_a_matter_of_certificates() -> None:
    target = GnmiTarget("tor:6030", insecure=True)
    assert type(failure(target, "e1", Failed(NOT + "Socket closed"))) is SwitchAway


def test_what_the_switch_answers_is_of_the_port() -> None:
    target = GnmiTarget("tor:6030")
    assert type(failure(target, "e1", Failed("none", "NOT_FOUND"))) is PortGone
    denied = failure(target, "e1", Failed("no", "PERMISSION_DENIED"))
    assert type(denied) is SwitchRefused
    assert str(denied).startswith("e1: PERMISSION_DENIED: no")


@pytest.mark.parametrize(
    ("status", "said", "problem", "fix"),
    [
        ("UNAUTHENTICATED", "no", "UNAUTHENTICATED: no", "user and its rights"),
        ("PERMISSION_DENIED", "no", "PERMISSION_DENIED: no", "user and its rights"),
        ("RESOURCE_EXHAUSTED", "message larger than max (2 vs. 1)", "answer is too large", "leaf"),
        ("RESOURCE_EXHAUSTED", "quota", "it limits requests: quota", "`sample_interval`"),
        ("INTERNAL", "odd", "INTERNAL: odd", "switch's log"),
        ("UNKNOWN", "odd", "UNKNOWN: odd", "switch's log"),
    ],
)
def test_a_refusal_says_what_it_is_about(status: str, said: str, problem: str, fix: str) -> None:
    error = failure(GnmiTarget("tor:6030"), "e1", Failed(said, status))
    assert type(error) is SwitchRefused
    assert problem in error.problem
    assert fix in error.fix
    assert ("rights" in error.fix) == ("rights" in fix)


def test_a_file_without_a_certificate_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    with pytest.raises(ConfigError, match="cannot be used for TLS") as raised:
        opened(GnmiTarget("tor:6030", ca_file=str(file)))
    assert raised.value.file == str(file)


def test_a_key_of_another_certificate_is_named(tmp_path: Path) -> None:
    ca = Authority(tmp_path)
    one, other = ca.issue("one"), ca.issue("other")
    with pytest.raises(ConfigError, match="cannot be used for TLS") as raised:
        opened(client(ca, one.cert, other.key))
    assert raised.value.file == f"{one.cert}, {other.key}"


def client(ca: Authority, cert: Path, key: Path) -> GnmiTarget:
    names = {"cert_file": str(cert), "cert_key_file": str(key)}
    return GnmiTarget("tor:6030", ca_file=str(ca.file), **names)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_secrets_that_others_can_use_are_refused(tmp_path: Path, mode: int) -> None:
    ca = Authority(tmp_path)
    pair = ca.issue("agent")
    pair.key.chmod(mode)
    with pytest.raises(ConfigError, match=f"chmod 600 {pair.key}"):
        opened(client(ca, pair.cert, pair.key))
    with pytest.raises(ConfigError, match=f"chmod 600 {pair.key}"):
        metadata(GnmiTarget("tor:6030", username="xco", password_file=str(pair.key)))


@pytest.mark.parametrize("content", [b"hus\xff", "hüsh".encode(), b"hu\nsh", b"hu\tsh"])
def test_a_password_that_grpc_cannot_carry_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "password"
    file.touch(mode=0o600)
    file.write_bytes(content)
    target = GnmiTarget("tor:6030", "xco", str(file), insecure=True)
    with pytest.raises(ConfigError, match=f"{file}: password_file: ") as raised:
        metadata(target)
    assert "printable ASCII" in raised.value.fix
    with pytest.raises(SwitchUntrusted, match="printable ASCII"):
        reopened(target)


def test_a_password_is_its_line_without_the_end(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.touch(mode=0o600)
    file.write_bytes(b"h ~!sh\r\n")
    found = metadata(GnmiTarget("tor:6030", "xco", str(file)))
    assert dict(found)["password"] == "h ~!sh"


def test_a_file_that_goes_later_is_a_problem_of_the_switch() -> None:
    with pytest.raises(SwitchUntrusted, match=r"^tor:6030: /nonexistent/ca\.pem: No such file"):
        reopened(GnmiTarget("tor:6030", ca_file="/nonexistent/ca.pem"))
