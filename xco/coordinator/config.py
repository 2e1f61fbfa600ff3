"""The coordinator's configuration: schema, defaults and descriptions.

The file is TOML with the table ``[coordinator]``; other tables belong to other programs. Quantities
are texts with their units: "980Mbps", "50us", "256KB". `plain` writes what the compiled loop reads
(xco/core/coordinator/config.h).
"""

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from xco.coordinator.locations import MOST_HOSTS, addresses
from xco.coordinator.timing import Timing
from xco.core_files import CLASSIFIER, SHIM, find
from xco.errors import ConfigError, UnitError
from xco.tables import Format, converted, read_tables
from xco.topology.file import TopologyFile, load_file
from xco.topology.graph import Topology
from xco.topology.vms import Vm
from xco.units import parse_duration, parse_rate, parse_size

DEFAULT_PATH: Final = Path("/etc/xtc/xco.toml")
MAX_CONTROLLERS: Final = 4
VM_KEY: Final = "vm"
"""Of the loop's lines about VMs."""
_TABLE: Final = "coordinator"
_FORM: Final = Format(
    forms={
        "coordinator": "a table: [coordinator]",
        "host": "the name of this host in the topology",
        "interface": "an interface's name, such as eth0",
        "topology": "the path of the topology's file, the same as the controller's",
        "key_file": "the path of a file of 32 bytes, the same as the controller's",
        "controllers": 'a list of 1 to 4, such as ["10.0.0.7:7400", "[fd00::7]:7400"]',
        "law": '"fair" or "published"',
        "peer_port": "a UDP port from 1 to 65535, such as 7401",
        "small_packets": "a power of two from 64 to 32768 bytes, such as 128",
        "bypass_share": "a share of the link above 0 and at most 0.5",
        "outside_share": "a share of the link above 0 and at most 1",
        "classifier": '"auto", "bpf" or "u32"',
        "gates": '"tbf", "edt" or "auto"',
        "marks": '"off", "hide" or "keep"',
        "fallback": '"safe", "open" or "hygenicc"',
        "admission": "a share of marked packets above 0 and at most 1, such as 0.8",
        "pace": "a share of what is granted, above 0.5 and at most 1",
        "switch": "a path from / on without spaces, of at most 107 characters",
        "locations": "a path from / on without spaces, of at most 107 characters",
    }
)

PlainPath = Annotated[str, msgspec.Meta(pattern=r"^/[^\s]*\Z", max_length=107)]
Share = Annotated[float, msgspec.Meta(gt=0, le=0.5)]


class CoordinatorTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The table ``[coordinator]``."""

    host: str
    """This host's name in the topology."""
    interface: Annotated[str, msgspec.Meta(pattern=r"^[^\s/-][^\s/]{0,14}\Z")]
    """Interface where the host's traffic leaves."""
    topology: str
    key_file: str
    controllers: Annotated[tuple[str, ...], msgspec.Meta(max_length=4)] = ()
    """Addresses and ports of the controller and its standbys; none only with `hygenicc`."""
    rate: str | None = None
    """What the host can send; default: the capacity of its link in the topology."""
    pace: Annotated[float, msgspec.Meta(gt=0.5, le=1)] = 0.98
    """Gates open at this fraction of the granted rate, so that the bottleneck has no queue."""
    small_packets: str = "128"
    """IP packets below this size bypass the gates."""
    bypass_share: Share = 0.05
    """Share of the link that small packets may use together, and flows without a queue together."""
    outside_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.1
    """Share of the link for all traffic to hosts outside the topology."""
    classifier: Literal["auto", "bpf", "u32"] = "auto"
    """What classifies packets: a BPF program, u32 filters, or whichever the kernel supports."""
    gates: Literal["tbf", "edt", "auto"] = "tbf"
    """Token buckets; departure times, which keep rates but no timeslices; or these if possible."""
    marks: Literal["off", "hide", "keep"] = "off"
    """Congestion marks (ECN) of incoming packets: ignored; counted by source and hidden from VMs;
    or counted and kept."""
    fallback: Literal["safe", "open", "hygenicc"] = "safe"
    """Without a controller: shares that cannot congest a link, the full line rate, or rates that
    the hosts agree on."""
    law: Literal["fair", "published"] = "fair"
    """How hosts agree on rates with `hygenicc`; the published law is there for comparisons."""
    admission: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    """Refuse new TCP connections to a host while at least this share of what arrives there is
    marked on the way; only with `hygenicc`; none by default."""
    peer_port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 7401
    """UDP port of the hosts' messages to each other, with `hygenicc`."""
    newcomer_queue: str = "256KB"
    """Queue limit of flows without a queue of their own."""
    flow_queue: str = "4MB"
    """Queue limit of one V2V flow."""
    flow_threshold: str = "8KB"
    """A flow that sends this much within `flow_window` gets a queue of its own."""
    flow_window: str = "10ms"
    flow_idle: str = "10s"
    """A flow that sent nothing for this long loses its queue."""
    guard: str = "50us"
    """A slice's gates close this long before its end."""
    hysteresis: str = "50us"
    """A slice is given up when nothing waited for this long (paper, section 3.1)."""
    heartbeat: str = "5ms"
    silence: str = "50ms"
    """Use safe shares after this long without a directive. WELCOME may change it."""
    hello: str = "100ms"
    poll_open: str = "50us"
    poll_closed: str = "250us"
    spin: str = "100us"
    """Longest busy wait before a gate's time; shorter where wake-ups are rarely that late."""
    burst: str = "20us"
    """Burst of an open gate, as time at its rate; at least two frames."""
    hang: str = "1s"
    """The guard kills a loop that makes no progress for this long."""
    priority: Annotated[int, msgspec.Meta(ge=0, le=98)] = 50
    """SCHED_FIFO priority; 0: ordinary scheduling."""
    switch: PlainPath | None = None
    """Control socket of zovn's switch, whose stations are behind this host; none by default."""
    locations: PlainPath | None = None
    """File for zovn's wires, that says at which host each MAC address is; none by default."""
    metrics: str | None = None
    """Address and port of the Prometheus metrics, such as "127.0.0.1:9169"; none by default."""
    state_dir: str = "/var/lib/xco"
    """Directory that keeps the highest epoch obeyed."""
    runtime_dir: str = "/run/xco"
    """Directory of statistics and of the loop's plain configuration."""


class CoordinatorConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A checked table with its quantities as numbers."""

    file: str
    table: CoordinatorTable
    topology: Topology
    tree_known: bool
    """Whether the file says which links carry traffic; otherwise the switches are asked."""
    host: int
    line_bps: int
    small_bytes: int
    sizes: dict[str, int]
    """In bytes, by the table's key."""
    timing: Timing
    vms: tuple[Vm, ...] = ()
    """VMs with a weight or a guarantee; none: gates are shared by interface, all alike."""

    @property
    def statistics(self) -> Path:
        """File where the loop publishes."""
        return Path(self.table.runtime_dir, f"coordinator-{self.table.interface}.statistics")

    @property
    def marks_file(self) -> Path:
        """File where the loop publishes marks by source."""
        return Path(self.table.runtime_dir, f"coordinator-{self.table.interface}.marks")

    @property
    def vms_file(self) -> Path:
        """File where the loop publishes the VMs that are here."""
        return Path(self.table.runtime_dir, f"coordinator-{self.table.interface}.vms")

    @property
    def places_file(self) -> Path:
        """File where the loop publishes at which host each MAC address is."""
        return Path(self.table.runtime_dir, f"coordinator-{self.table.interface}.places")

    @property
    def locations_problem_file(self) -> Path:
        """File that says why the file of locations is not written; empty: it is."""
        return Path(self.table.runtime_dir, f"coordinator-{self.table.interface}.problem")

    @property
    def plain_file(self) -> Path:
        """File of the loop's plain configuration."""
        return Path(self.table.runtime_dir, f"coordinator-{self.table.interface}.conf")


def load_config(path: Path = DEFAULT_PATH) -> CoordinatorConfig:
    """Read the file and the topology that it names.

    Raises:
        ConfigError: names file, key, what is wrong and what to do; also if times do not fit
            together (docs/reference/xco-timing.md).
        TopologyError: the topology cannot be coordinated.
    """
    tables = read_tables(path, _FORM)
    if _TABLE not in tables:
        raise ConfigError(str(path), _TABLE, "missing", f"write {_FORM.forms[_TABLE]}")
    return checked(tables[_TABLE], str(path))


def checked(raw: Any, file: str = "configuration") -> CoordinatorConfig:
    """Return the configuration of one table, with its topology loaded.

    Raises:
        ConfigError, TopologyError: as `load_config`.
    """
    table = converted(raw, CoordinatorTable, file, _TABLE, _FORM)
    try:
        return _numbers(table, file)
    except UnitError as error:
        raise ConfigError(
            file, f"{_TABLE}.{error.field}", f"{error.got!r}", error.args[0]
        ) from None


def _numbers(table: CoordinatorTable, file: str) -> CoordinatorConfig:
    loaded = load_file(Path(table.topology))
    topology = loaded.topology
    host = topology.host_index(table.host)
    if host is None:
        fix = f"one of those in {table.topology}"
        raise ConfigError(file, f"{_TABLE}.host", f"no host {table.host!r} in the topology", fix)
    for controller in (*table.controllers, *filter(None, [table.metrics])):
        endpoint(controller, file)
    small = parse_size(table.small_packets, field="small_packets")
    if small & (small - 1) or not 64 <= small <= 32768:
        forms = _FORM.forms["small_packets"]
        raise ConfigError(file, f"{_TABLE}.small_packets", f"{small} bytes", f"write {forms}")
    if table.gates == "edt" and table.classifier == "u32":
        fix = 'write coordinator.classifier = "bpf", or coordinator.gates = "tbf"'
        problem = '"edt" needs a BPF program, and coordinator.classifier is "u32"'
        raise ConfigError(file, f"{_TABLE}.gates", problem, fix)
    _check_fallback(table, topology, file)
    _check_vms(table, loaded.vms, file)
    _check_map(table, file)
    _check_locations(table, topology, host, file)
    rate = topology.host_rate_bps(host)
    timing = Timing(
        **{key: parse_duration(getattr(table, key), field=key) for key in Timing.__struct_fields__}
    )
    timing.check(file)
    return CoordinatorConfig(
        file=file,
        table=table,
        topology=topology,
        tree_known=_tree_known(loaded),
        host=host,
        line_bps=rate if table.rate is None else parse_rate(table.rate, field="rate"),
        small_bytes=small,
        sizes={
            key: parse_size(getattr(table, key), field=key)
            for key in ("newcomer_queue", "flow_queue", "flow_threshold")
        },
        timing=timing,
        vms=loaded.vms,
    )


def _check_fallback(table: CoordinatorTable, topology: Topology, file: str) -> None:
    """Check that a host without a controller has what it then needs.

    Raises:
        ConfigError: names the key to change.
    """
    alone = table.fallback == "hygenicc"
    if not table.controllers and not alone:
        fix = f'write {_FORM.forms["controllers"]}, or {_TABLE}.fallback = "hygenicc"'
        raise ConfigError(file, f"{_TABLE}.controllers", "there is none", fix)
    if alone and table.marks == "off":
        problem = '"hygenicc" needs what arrives from each host, and coordinator.marks is "off"'
        raise ConfigError(file, f"{_TABLE}.fallback", problem, 'write coordinator.marks = "hide"')
    if table.law == "published" and not alone:
        problem = f'"published" needs "hygenicc", and coordinator.fallback is "{table.fallback}"'
        fix = f'write {_TABLE}.fallback = "hygenicc", or {_TABLE}.law = "fair"'
        raise ConfigError(file, f"{_TABLE}.law", problem, fix)
    _check_admission(table, file)
    nowhere = [host.name for host in topology.hosts if not host.addresses]
    if alone and nowhere:
        problem = f'"hygenicc" needs an address of each host, and {nowhere[0]} has none'
        fix = f"write host.{nowhere[0]}.addresses in {table.topology}, its own address first"
        raise ConfigError(file, f"{_TABLE}.fallback", problem, fix)


def _check_vms(table: CoordinatorTable, vms: tuple[Vm, ...], file: str) -> None:
    """Check that no VM names the interface where the host's traffic leaves.

    Raises:
        ConfigError: one is.
    """
    for vm in vms:
        if vm.interface == table.interface:
            problem = f"{table.interface!r} is the interface of vm.{vm.name} in {table.topology}"
            fix = f"write the host's end of its link as vm.{vm.name}.interface"
            raise ConfigError(file, f"{_TABLE}.interface", problem, fix)


def _check_admission(table: CoordinatorTable, file: str) -> None:
    """Check that connections can be refused where that is asked for.

    Raises:
        ConfigError: names the key and its fix.
    """
    if table.admission is None:
        return
    where = f"{_TABLE}.admission"
    if table.fallback != "hygenicc":
        problem = f'needs what hosts tell each other, and {_TABLE}.fallback is "{table.fallback}"'
        fix = f'write {_TABLE}.fallback = "hygenicc", or leave {where} out'
        raise ConfigError(file, where, problem, fix)
    if table.classifier == "u32":
        problem = f'needs a BPF program, and {_TABLE}.classifier is "u32"'
        fix = f'write {_TABLE}.classifier = "bpf", or leave {where} out'
        raise ConfigError(file, where, problem, fix)


def _check_map(table: CoordinatorTable, file: str) -> None:
    """Check that a controller distributes the map that `locations` and `switch` are about.

    Raises:
        ConfigError: names the key and its fix.
    """
    for key in ("locations", "switch"):
        where = f"{_TABLE}.{key}"
        if getattr(table, key) is None:
            continue
        if not table.controllers:
            problem = "a controller distributes locations, and there is none"
            fix = f"write {_TABLE}.controllers, or leave {where} out"
            raise ConfigError(file, where, problem, fix)
        if table.classifier == "u32":
            problem = f'needs a BPF program, and {_TABLE}.classifier is "u32"'
            fix = f'write {_TABLE}.classifier = "bpf", or leave {where} out'
            raise ConfigError(file, where, problem, fix)


def _check_locations(table: CoordinatorTable, topology: Topology, host: int, file: str) -> None:
    """Check that zovn can send to all hosts.

    Raises:
        ConfigError: names the key and its fix.
    """
    if table.locations is None:
        return
    where, known = f"{_TABLE}.locations", addresses(topology, host)
    nowhere = [topology.hosts[number].name for number, address in known.items() if not address]
    if len(known) > MOST_HOSTS:
        problem = f"zovn sends to {MOST_HOSTS} other hosts, and {table.topology} has {len(known)}"
        raise ConfigError(file, where, problem, f"leave {where} out")
    if nowhere:
        fix = f"write its IPv4 address first in host.{nowhere[0]}.addresses of {table.topology}"
        raise ConfigError(file, where, f"{nowhere[0]} begins with no IPv4 address", fix)


def endpoint(text: str, file: str = "configuration") -> tuple[str, int]:
    """Return address and port of "10.0.0.7:7400" or "[fd00::7]:7400".

    Raises:
        ConfigError: the text is no such address.
    """
    address, _, port = text.rpartition(":")
    try:
        plain = str(ip_address(address.removeprefix("[").removesuffix("]")))
        number = int(port)
    except ValueError:
        plain, number = "", 0
    if not plain or not 0 < number < 2**16 or (":" in plain) != address.startswith("["):
        fix = f"write {_FORM.forms['controllers']}"
        raise ConfigError(file, f"{_TABLE}.controllers", f"{text!r}", fix)
    return plain, number


def plain(config: CoordinatorConfig) -> str:
    """Return the text that the compiled loop reads, one key a line."""
    return "".join(f"{line}\n" for line in _lines(config))


def _lines(config: CoordinatorConfig) -> Iterator[str]:
    table, bypass_bps = config.table, round(config.line_bps * config.table.bypass_share)
    yield f"interface {table.interface}"
    yield f"key_file {table.key_file}"
    yield f"statistics {config.statistics}"
    yield f"epoch_file {Path(table.state_dir, f'epoch-{table.interface}')}"
    yield f"host {config.host}"
    yield f"digest {config.topology.hosts_digest().hex()}"
    yield f"nodes_digest {config.topology.nodes_digest().hex()}"
    yield f"attached {_neighbour(config)}"
    yield f"line_bps {config.line_bps}"
    yield f"pace_ppm {round(table.pace * 1e6)}"
    yield f"small_bytes {config.small_bytes}"
    yield f"small_bps {bypass_bps}"
    yield f"newcomer_bps {bypass_bps}"
    yield f"outside_bps {round(config.line_bps * table.outside_share)}"
    if table.classifier != "u32" and (classifier := find(CLASSIFIER)):
        yield f"classifier {classifier}"
    if table.marks != "off" and (shim := find(SHIM)):
        yield f"shim {shim}"
        yield f"shim_keep {int(table.marks == 'keep')}"
        yield f"marks {config.marks_file}"
    yield f"fallback_open {int(table.fallback == 'open')}"
    if table.fallback == "hygenicc":
        yield from _peers(config)
    yield f"classifier_needed {int(table.classifier == 'bpf')}"
    yield f"edt {int(table.gates != 'tbf' and table.classifier != 'u32')}"
    yield f"edt_needed {int(table.gates == 'edt')}"
    yield f"newcomer_bytes {config.sizes['newcomer_queue']}"
    yield f"queue_bytes {config.sizes['flow_queue']}"
    yield f"flow_bytes {config.sizes['flow_threshold']}"
    yield f"priority {table.priority}"
    for key in Timing.__struct_fields__:
        yield f"{key}_ns {getattr(config.timing, key)}"
    for controller in table.controllers:
        address, port = endpoint(controller)
        yield f"controller {address} {port}"
    for index, host in enumerate(config.topology.hosts):
        if index != config.host:
            yield from (f"over {index} {link} {bps}" for link, bps in _safe_shares(config, index))
            yield from (f"address {address} {index}" for address in host.addresses)
    if config.vms:
        yield f"vms_file {config.vms_file}"
    yield from _of_the_map(config)
    yield from map(vm_line, config.vms)


def _of_the_map(config: CoordinatorConfig) -> Iterator[str]:
    if config.table.locations is not None:
        yield f"places_file {config.places_file}"
        yield f"locations_file {config.table.locations}"
    if config.table.switch is not None:
        yield f"switch {config.table.switch}"


def vm_line(vm: Vm) -> str:
    """Return what the loop reads of a VM."""
    return f"{VM_KEY} {vm.interface} {vm.weight} {vm.guarantee_mbps}"


def _peers(config: CoordinatorConfig) -> Iterator[str]:
    """Yield what the loop needs to live without a controller."""
    topology = config.topology
    yield "hygenicc 1"
    yield f"hosts {len(topology.hosts)}"
    yield f"peer_port {config.table.peer_port}"
    yield f"published {int(config.table.law == 'published')}"
    if config.table.admission is not None:
        yield f"admission_ppm {max(1, round(config.table.admission * 1e6))}"
    yield f"port_bps {topology.host_rate_bps(config.host)}"
    for index, host in enumerate(topology.hosts):
        if index != config.host:
            yield f"peer {host.addresses[0]} {index}"


def _neighbour(config: CoordinatorConfig) -> int:
    """Return the number of the node at the other end of the host's link."""
    topology = config.topology
    uplink = topology.uplink(config.host)
    link = topology.links[uplink >> 1]
    return topology.node_indices[link.a if uplink & 1 else link.b]


def _tree_known(loaded: TopologyFile) -> bool:
    """Whether no switch could contradict the file: none is asked, or there are no loops to cut."""
    topology = loaded.topology
    nodes = len(topology.hosts) + len(topology.switches)
    return not loaded.sources or len(topology.links) == nodes - 1


def _safe_shares(config: CoordinatorConfig, destination: int) -> Iterator[tuple[int, int]]:
    """Yield the links on the way to a host, and what this host may send over each, in bits/s.

    Where the tree is not known, any link between switches may be on the path, and every other host
    may send over it: these links count as one.
    """
    topology, source = config.topology, config.host
    if config.tree_known:
        yield from topology.link_shares_bps(source, destination)
        return
    hosts = {host.name for host in topology.hosts}
    others = len(hosts) - 1
    between = (link for link in topology.links if link.a not in hosts and link.b not in hosts)
    least = min((link.capacity_bps for link in between), default=topology.host_rate_bps(source))
    yield len(hosts), least // others
    yield destination, topology.host_rate_bps(destination) // others
