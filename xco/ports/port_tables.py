"""The tables [[port-agent.port]]: one structure for each kind of reader."""

import re
from pathlib import Path
from typing import Annotated, Final, Literal, Self

import msgspec

from xco.errors import ConfigError, UnitError
from xco.tables import Format
from xco.units import parse_duration

FORM: Final = Format(
    forms={
        "port-agent": "a table: [port-agent]",
        "topology": "the path of the topology's file, the same as the controller's",
        "controllers": 'a list of 1 to 4, such as ["10.0.0.7:7400", "[fd00::7]:7400"]',
        "key_file": "the path of the agent's key: xco key agent MASTER --out FILE",
        "interval": 'a duration, such as "50ms"',
        "runtime_dir": 'a directory, such as "/run/xco"',
        "metrics": 'an address and a port, such as "127.0.0.1:9413"',
        "port": "a table for each port: [[port-agent.port]]",
        "link": 'two names of the topology, the port\'s own first, such as ["tor", "store"]',
        "reader": '"linux", "openflow" or "gnmi"',
        "interface": 'the interface of the port, such as "swp1"',
        "switch": '"tcp:ADDRESS:PORT" or "unix:PATH", such as "tcp:127.0.0.1:6653"',
        "number": "the OpenFlow number of the port, 1 to 4294967040",
        "queue": "a queue of the port: a number for openflow, a name for gnmi",
        "target": 'address and port of the gNMI server, such as "switch1:9339"',
        "marks": "the path of the vendor's counter of marked packets",
        "mode": '"subscribe" or "get"',
        "sample_interval": 'a duration from "10ms" to "1s", such as "500ms"',
    }
)

_Interface = Annotated[str, msgspec.Meta(pattern=r"^[^\s/-][^\s/]{0,14}\Z")]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
_FILES: Final = ("password_file", "ca_file", "cert_file", "cert_key_file")
_SHORTEST_NS: Final = 10_000_000
_LONGEST_NS: Final = 1_000_000_000
"""The controller takes a port that it has not heard of for 3 s as one without counters."""
_SWITCH = re.compile(r"tcp:(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):([0-9]{1,5})|unix:/\S+")


class _Port(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    link: tuple[str, str]
    """The port's own node, and the node at the link's other end."""

    def completed(self, interface: str, file: str, key: str) -> Self:
        """Return the table with what the topology adds; `interface` may be "".

        Raises:
            ConfigError: it is incomplete or contradicts itself.
        """
        del interface, file, key
        return self


class LinuxPort(_Port, frozen=True, kw_only=True):
    """An interface of this machine."""

    reader: Literal["linux"]
    interface: _Interface = ""
    """Default: the port's name in the topology."""

    def completed(self, interface: str, file: str, key: str) -> Self:
        """Return the table with the interface that the topology names, unless it has its own."""
        if self.interface:
            return self
        if not interface:
            fix = f"write {FORM.forms['interface']}, or `ports` of the link in the topology"
            raise ConfigError(file, f"{key}.interface", "missing", fix)
        return msgspec.structs.replace(self, interface=interface)


class OpenFlowPort(_Port, frozen=True, kw_only=True):
    """A port of a switch that speaks OpenFlow 1.3."""

    reader: Literal["openflow"]
    switch: str
    number: Annotated[int, msgspec.Meta(ge=1, le=0xFFFFFF00)]
    queue: Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFE)] | None = None
    """Default: the whole port."""

    def completed(self, interface: str, file: str, key: str) -> Self:
        """Return the table as it is, with its address checked."""
        del interface
        found = _SWITCH.fullmatch(self.switch)
        if found is None or (found[2] and not 0 < int(found[2]) < 2**16):
            fix = f"write {FORM.forms['switch']}"
            raise ConfigError(file, f"{key}.switch", f"{self.switch!r} is malformed", fix)
        return self


class GnmiPortTable(_Port, frozen=True, kw_only=True):
    """A port of a switch with a gNMI server."""

    reader: Literal["gnmi"]
    target: Annotated[str, msgspec.Meta(pattern=r"^\S+:[0-9]{1,5}\Z")]
    interface: _Name | None = None
    """Default: the port's name in the topology."""
    queue: _Name | None = None
    """Default: the whole interface."""
    marks: _Name | None = None
    origin: str = ""
    """Origin of the paths of OpenConfig; default: the switch's own."""
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    """Default: the certificates that this machine trusts."""
    cert_file: str = ""
    cert_key_file: str = ""
    tls_name: str = ""
    insecure: bool = False
    """Whether to speak without encryption."""

    mode: Literal["subscribe", "get"] = "subscribe"
    """Whether the switch streams its counters, or is asked for them."""
    sample_interval: str = "1s"
    """Time between two samples of a stream."""

    def completed(self, interface: str, file: str, key: str) -> Self:
        """Return the table with the topology's interface as default, and absolute paths."""
        self._check(file, key)
        if self.interface is None and not interface:
            fix = f"write {FORM.forms['interface']}, or `ports` of the link in the topology"
            raise ConfigError(file, f"{key}.interface", "missing", fix)
        given = ((name, getattr(self, name)) for name in _FILES)
        files = {name: str(Path(file).parent / path) for name, path in given if path}
        return msgspec.structs.replace(self, interface=self.interface or interface, **files)

    @property
    def sample_ns(self) -> int:
        """Time between two samples. Raises UnitError."""
        return parse_duration(self.sample_interval, field="sample_interval")

    def _check(self, file: str, key: str) -> None:
        for name in ("ca_file", "cert_file", "tls_name") if self.insecure else ():
            if getattr(self, name):
                problem = "contradicts `insecure`, a connection without encryption"
                raise ConfigError(file, f"{key}.{name}", problem, "remove one of them")
        if bool(self.cert_file) != bool(self.cert_key_file):
            fix = "write both, or neither"
            raise ConfigError(file, f"{key}.cert_file", "comes with `cert_key_file`", fix)
        self._check_user(file, f"{key}.username")
        self._check_samples(file, f"{key}.sample_interval")

    def _check_user(self, file: str, key: str) -> None:
        if self.password_file and not self.username:
            raise ConfigError(file, key, "missing", "write the password's user")
        if not (self.username.isascii() and self.username.isprintable()):
            problem = f"gRPC cannot carry {self.username!r}"
            raise ConfigError(file, key, problem, "write a user of printable ASCII")

    def _check_samples(self, file: str, key: str) -> None:
        fix = f"write {FORM.forms['sample_interval']}"
        try:
            if _SHORTEST_NS <= self.sample_ns <= _LONGEST_NS:
                return
        except UnitError as error:
            raise ConfigError(file, key, str(error), fix) from error
        raise ConfigError(file, key, f"{self.sample_interval!r} is out of range", fix)


PortTable = LinuxPort | OpenFlowPort | GnmiPortTable
TABLES: Final[dict[str, type[LinuxPort] | type[OpenFlowPort] | type[GnmiPortTable]]] = {
    "linux": LinuxPort,
    "openflow": OpenFlowPort,
    "gnmi": GnmiPortTable,
}
