"""The daemon's configuration: these frozen structures define its schema, defaults and terms.

A file and its drop-ins (`conf.d/*.toml`, by name) are merged table by table. An unknown key is an
error, so that typos are not ignored silently.
"""

from typing import Annotated, Final, Literal

import msgspec

from xtc.control.law import HEADROOM
from xtc.spec import ActuatorSpec

PERIODS_S: Final = (0.1, 60.0)
"""The shortest and the longest period of a loop, simulated or not."""
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Rate = str | float
"""A packet rate: "20kpps", or a number of packets/s."""
Cap = str | float
"""A cap: "35%", or a fraction of one CPU."""
Burst = str | float
"""A burst: "200ms" of the setpoint, "2Mb", or a number of packets."""
Weight = str | int
"""A weight: "auto", "keep", or a number in its platform's unit."""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the configuration."""


class DaemonSection(Section, frozen=True):
    """The loop and its environment."""

    period_s: Annotated[float, msgspec.Meta(ge=PERIODS_S[0], le=PERIODS_S[1])] = 1.0
    """Seconds between two caps; values below 0.2 are for cgroup and deadline only."""
    meter_period_s: Annotated[float, msgspec.Meta(ge=0.02, le=10)] = 0.1
    """Seconds after which a failed reading of /proc/net/dev is retried."""
    state_dir: str = "/var/lib/xtc"
    """Journal and lock; must survive the daemon."""
    runtime_dir: str = "/run/xtc"
    """Local sockets."""
    proc_net_dev: str = "/proc/self/net/dev"
    """Where interfaces are counted; another namespace's is /proc/<pid>/net/dev."""
    on_exit: Literal["release", "keep"] = "release"
    """What the daemon does with its caps on exit; `keep` leaves them for the next one to adopt."""
    observe: bool = False
    """Compute and show every cap without writing it."""
    floors: bool = True
    """Give controlled routers weights, so that others cannot take the CPU that setpoints need."""
    max_release_share: Share = 0.5
    """A reload that would release more than this share of the routers is refused."""


class ServerSection(Section, frozen=True):
    """Where policers connect; local sockets need no settings."""

    tcp: str | None = None
    """Address for requests, such as tcp://10.0.0.7:7077; needs the two keys below."""
    tcp_telemetry: str | None = None
    secret_key_file: str | None = None
    authorised_keys_dir: str | None = None


class MetricsSection(Section, frozen=True):
    """Prometheus metrics over HTTP."""

    listen: str | None = None
    """Address and port, such as 127.0.0.1:9167; none by default."""


class LogSection(Section, frozen=True):
    """Structured logs on standard error."""

    format: Literal["auto", "json", "console"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class LimiterSection(Section, frozen=True):
    """Traffic that limits and shields exempt, for routing protocols; a TBF limits everything."""

    exempt: tuple[str, ...] = ()
    """Protocols in addition to those that are always exempt, such as "udp/4789" or "ip/47"."""
    exempt_pps: Rate = 1000.0
    """Rate reserved for exempt traffic, on each interface."""
    shield: bool = True
    """Drop what exceeds a controlled router's setpoint before the host carries it there."""


class RouterSection(Section, frozen=True):
    """One virtual router. Its name is the name of its table: [router.NAME]."""

    actuator: ActuatorSpec
    """What its cap applies to."""
    interfaces: tuple[str, ...] = ()
    """Names or globs, such as "vif7.*"."""
    domid: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """A Xen domain: denotes every vif<domid>.<n>."""
    one_interface: bool = False
    """Whether packets arrive and leave through one interface, as with VLANs on a single trunk."""
    side: Literal["host", "router"] = "host"
    """Which end of the interfaces is counted: "host" for vif, tap and the host's end of a veth."""
    observe: bool = False
    """Compute and show its cap without writing it."""
    shield: bool = True
    """Drop what exceeds its setpoint before the host carries it there."""
    setpoint: Rate | None = None
    """In packets/s, or in bits/s as text, such as "50Mb/s".

    It is in force from the start and whenever no lease is; without it, the router is uncapped.
    """
    burst: Burst | None = None
    """What the setpoint allows beyond its rate in any window; default: 0.2 s of it."""
    law: str = "default"
    model: str | None = None
    """A model file, or the name of a bundled model."""
    floor: Cap | None = None
    """The smallest cap written, so that routing protocols stay alive."""
    ceiling: Cap | None = None
    safe_cap: Cap | None = None
    """The cap after the loop has been blind for five periods."""
    headroom: Annotated[float, msgspec.Meta(ge=HEADROOM, le=4.0)] = HEADROOM
    """Behind a shield, its cap in multiples of its CPU need."""
    weight: Weight = "auto"
    """CPU floor while it is controlled: `auto` follows the setpoint, `keep` changes no weight."""


RouterName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$(?!\n)")]


class Config(Section, frozen=True):
    """The whole configuration."""

    daemon: DaemonSection = DaemonSection()
    server: ServerSection = ServerSection()
    metrics: MetricsSection = MetricsSection()
    log: LogSection = LogSection()
    limiter: LimiterSection = LimiterSection()
    router: dict[RouterName, RouterSection] = {}
