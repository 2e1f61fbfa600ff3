"""How a gNMI target is reached: credentials from files, the channel, and what a failure means."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from xco.errors import (
    ConfigError,
    PortError,
    PortGone,
    SwitchAway,
    SwitchRefused,
    SwitchUntrusted,
)
from xco.ports.gnmi_library import grpc

LOGIN_REFUSALS: Final = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
_LARGEST: Final = 1 << 20
"""Bytes of an answer: the counters of a port fit many times."""
_MACHINES: Final = "/etc/ssl/certs/ca-certificates.crt"
_NOT_CONNECTED: Final = "failed to connect to all addresses"
_TOO_LARGE: Final = "larger than max"
_TLS_CAUSES: Final = (
    ("certificate has expired", "its certificate has expired", "renew the switch's certificate"),
    (
        "certificate is not yet valid",
        "its certificate is not yet valid",
        "set the clocks of the switch and of this machine",
    ),
    (
        "Hostname Verification",
        "its certificate is for another name",
        "write the certificate's name as `tls_name`, or renew the certificate",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "its certificate is signed by an unknown CA",
        "name the CA's certificate as `ca_file`",
    ),
    (
        "certificate signature failure",
        "its certificate is signed by another CA of the same name",
        "name the CA's present certificate as `ca_file`",
    ),
    (
        "WRONG_VERSION_NUMBER",
        "it does not speak TLS",
        "turn TLS on at the switch, or write `insecure = true`",
    ),
    (
        "_ALERT_",
        "it refuses the agent's certificate",
        "check `cert_file` and `cert_key_file`, and the CA that the switch trusts",
    ),
    (
        "Socket closed",
        "it closes the connection",
        "check that the switch accepts `cert_file`, and that `insecure` is as at the switch",
    ),
)
"""What gRPC says of a failed handshake, what that means, and the fix."""


@dataclass(frozen=True, slots=True)
class GnmiTarget:
    """A switch, and how it is reached."""

    address: str
    """Address and port, such as "switch1:9339"."""
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    """Certificates that sign the switch's; none: those that this machine trusts."""
    cert_file: str = ""
    """This program's certificate, with `cert_key_file`, where the switch asks for one."""
    cert_key_file: str = ""
    tls_name: str = ""
    """Name in the switch's certificate, where it differs from the address."""
    insecure: bool = False
    """Whether to speak without encryption."""


def opened(target: GnmiTarget) -> Any:
    """Return a channel; it connects at its first call.

    Raises:
        ConfigError: a file cannot be used.
    """
    # With a pool of its own, a new channel does not inherit gRPC's wait after a failure.
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", _LARGEST),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    if target.tls_name:
        options.append(("grpc.ssl_target_name_override", target.tls_name))
    if target.insecure:
        return grpc.insecure_channel(target.address, options)
    return grpc.secure_channel(target.address, _credentials(target), options)


def reopened(target: GnmiTarget) -> tuple[Any, list[tuple[str, str]]]:
    """Return a channel and the metadata of requests, from the files as they are now.

    Raises:
        SwitchUntrusted: a file can no longer be used.
    """
    try:
        return opened(target), metadata(target)
    except ConfigError as error:
        problem = f"{error.file}: {error.problem}"
        raise SwitchUntrusted(target.address, problem, error.fix) from error


def metadata(target: GnmiTarget) -> list[tuple[str, str]]:
    """Return user and password, as each request names them.

    Raises:
        ConfigError: the password's file cannot be used, or others can read it.
    """
    if not target.username:
        return []
    password = _password(target.password_file) if target.password_file else ""
    return [("username", target.username), ("password", password)]


def _password(file: str) -> str:
    """Return the password in a file; gRPC's metadata is printable ASCII."""
    password = _secret(file).decode("ascii", "replace").strip()
    if password.isascii() and password.isprintable():
        return password
    fix = "write a password of printable ASCII, on one line"
    raise ConfigError(file, "password_file", "gRPC cannot carry what is in it", fix)


def _credentials(target: GnmiTarget) -> Any:
    ca_file = target.ca_file or ssl.get_default_verify_paths().cafile or _MACHINES
    roots = _content(ca_file)
    certificate = _content(target.cert_file) if target.cert_file else None
    key = _secret(target.cert_key_file) if target.cert_key_file else None
    _check(target, ca_file)
    return grpc.ssl_channel_credentials(roots, key, certificate)


def _check(target: GnmiTarget, ca_file: str) -> None:
    """Raise ConfigError for files that hold no certificate or key: gRPC would not say which."""
    context, checked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ca_file
    try:
        context.load_verify_locations(ca_file)
        if target.cert_file:
            checked = f"{target.cert_file}, {target.cert_key_file}"
            # An empty password: a key with one must not ask for it on the terminal.
            context.load_cert_chain(target.cert_file, target.cert_key_file, lambda: "")
    except (ssl.SSLError, OSError) as error:
        fix = "write certificates and key in PEM, the key without a password, both of one pair"
        raise ConfigError(checked, "", "cannot be used for TLS", fix) from error


def _secret(path: str) -> bytes:
    """Return the content of a file that only its owner may read."""
    content = _content(path)
    if Path(path).stat().st_mode & 0o077:
        raise ConfigError(path, "", "other users can read it", f"chmod 600 {path}")
    return content


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        problem = error.strerror or "cannot be read"
        raise ConfigError(path, "", problem, "name a file that this program may read") from error


def failure(target: GnmiTarget, port: str, error: Any) -> PortError:
    """Return what a failed call means; what fails with the connection names the switch."""
    code, said = error.code(), error.details() or "no details"
    # An established connection that ends says nothing about certificates.
    if said.startswith(_NOT_CONNECTED) and not target.insecure:
        for words, problem, fix in _TLS_CAUSES:
            if words in said:
                return SwitchUntrusted(target.address, problem, fix)
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        fix = "check address, port, certificates, and that gNMI runs"
        return SwitchAway(target.address, said, fix)
    if code is grpc.StatusCode.NOT_FOUND:
        return PortGone(port, said, "correct `interface`, `queue` or `marks`")
    return _refused(port, code, said)


def _refused(port: str, code: Any, said: str) -> SwitchRefused:
    if code in LOGIN_REFUSALS:
        return SwitchRefused(port, f"{code.name}: {said}", "check the user and its rights")
    if code is not grpc.StatusCode.RESOURCE_EXHAUSTED:
        return SwitchRefused(port, f"{code.name}: {said}", "see the switch's log")
    if _TOO_LARGE in said:
        fix = "read fewer ports of it, and name a leaf as `marks`"
        return SwitchRefused(port, f"its answer is too large: {said}", fix)
    fix = "raise `interval` or `sample_interval`, or its limit"
    return SwitchRefused(port, f"it limits requests: {said}", fix)
