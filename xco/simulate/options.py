"""Scenarios from a TOML file or a command line: `[simulation]`, and optionally `[[flow]]`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import numpy as np

from xco.errors import ConfigError
from xco.simulate.scenario import Engine, Policy, Scenario, Strategy
from xco.simulate.traffic import GREEDY, Traffic, flows, halves, shuffled
from xco.tables import Format, check_keys, converted, read_tables
from xco.topology.file import load_topology
from xco.topology.graph import Topology
from xco.topology.shapes import dumbbell, star_topology, tree_topology
from xco.units import parse_duration, parse_rate, parse_size

Setup = Literal["tree", "incast", "uplink"]
Pattern = Literal["halves", "shuffled"]

ROW: Final = 200
"""Hosts in a row of the paper's tree: 10 racks of 20."""
PLACES: Final = frozenset({"topology", "rows", "hosts"})
"""Mutually exclusive options that define the traffic."""
FORM: Final = Format(
    ConfigError,
    {
        "simulation": "a table: [simulation]",
        "flow": "a table each: [[flow]]",
        "setup": "tree, incast or uplink",
        "strategy": "uncoordinated, rate, timeslice or hybrid",
        "policy": "published or fair",
        "engine": "native or python",
        "traffic": "halves or shuffled",
        "seconds": "a number above 0, such as 1.5",
        "kind": "udp or tcp",
        "seed": "a whole number from 0 on",
    },
)


class FlowTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A V2V flow between two named hosts; `rate` makes a UDP sender paced."""

    source: str
    destination: str
    kind: Literal["udp", "tcp"] = "udp"
    rate: str | None = None


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys of the table `[simulation]`; quantities with their units."""

    setup: Setup = "tree"
    topology: str | None = None
    """A topology file, instead of a predefined set-up."""
    rows: int | None = None
    hosts: int | None = None
    senders: int | None = None
    """For the set-ups incast and uplink; default 5."""
    tcp: int = 0
    """How many of those senders are TCP."""
    traffic: Pattern = "halves"
    rate: str | None = None
    """Offered rate of each UDP sender; default: as much as it may send."""
    edge: str = "1Gbps"
    uplink: str = "10Gbps"
    strategy: Strategy = "timeslice"
    policy: Policy = "fair"
    engine: Engine = "native"
    seconds: float = 1.0
    slot: str = "200us"
    slice: str = "2ms"
    threshold: str = "1ms"
    hysteresis: str = "50us"
    buffer: str = "128KB"
    message: str = "64KiB"
    frame: str = "1500"
    burst: float = 1.0
    timeout: str = "200ms"
    window: str = "1MB"
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0


def load_options(path: Path) -> tuple[Options, tuple[FlowTable, ...]]:
    """Read a scenario's file.

    Raises:
        ConfigError: names the file and key, what is wrong, and what to write.
    """
    tables, file = read_tables(path, FORM), str(path)
    check_keys(tables, {"simulation": dict, "flow": list}, file, FORM)
    listed = tuple(
        converted(raw, FlowTable, file, f"flow[{index}]", FORM)
        for index, raw in enumerate(tables.get("flow", []))
    )
    return converted(tables.get("simulation", {}), Options, file, "simulation", FORM), listed


def overridden(options: Options, given: Mapping[str, object]) -> Options:
    """Return the options updated with the given values other than None.

    Raises:
        ConfigError: a value has the wrong type, or is not one of the choices.
    """
    changes = {key: value for key, value in given.items() if value is not None}
    if PLACES & changes.keys():
        changes = dict.fromkeys(PLACES) | changes
    return converted(msgspec.structs.asdict(options) | changes, Options, "", "simulation", FORM)


def scenario_of(options: Options, listed: tuple[FlowTable, ...] = ()) -> Scenario:
    """Return the scenario for these options and any named flows.

    Raises:
        ConfigError: options exclude each other or are invalid, or a host is unknown.
        UnitError: a quantity that cannot be read.
    """
    if listed and (options.tcp or options.rate is not None):
        fix = "write kind or rate into each [[flow]]"
        raise ConfigError("", "tcp, rate", "flows are named one by one", fix)
    topology = _topology(options)
    return Scenario(
        topology=topology,
        traffic=_named(topology, listed) if listed else _traffic(options, topology),
        strategy=options.strategy,
        policy=options.policy,
        engine=options.engine,
        duration_ns=_seconds(options.seconds),
        slot_ns=parse_duration(options.slot, field="slot"),
        slice_ns=parse_duration(options.slice, field="slice"),
        threshold_ns=parse_duration(options.threshold, field="threshold"),
        hysteresis_ns=parse_duration(options.hysteresis, field="hysteresis"),
        buffer_bytes=parse_size(options.buffer, field="buffer"),
        message_bytes=parse_size(options.message, field="message"),
        frame_bytes=parse_size(options.frame, field="frame"),
        burst=options.burst,
        timeout_ns=parse_duration(options.timeout, field="timeout"),
        window_bytes=parse_size(options.window, field="window"),
        seed=options.seed,
    )


def _topology(options: Options) -> Topology:
    given = [key for key in sorted(PLACES) if getattr(options, key) is not None]
    if len(given) > 1:
        raise ConfigError("", ", ".join(given), "more than one is given", "give one")
    if given and options.setup != "tree":
        raise ConfigError("", given[0], f"not with the set-up {options.setup}", "give one of them")
    senders = _senders(options)
    if options.topology is not None:
        return load_topology(Path(options.topology))
    if options.setup == "tree":
        return tree_topology(_rows(options), edge=options.edge, uplink=options.uplink)
    if options.setup == "incast":
        return star_topology(senders + 1, options.edge)
    return dumbbell(senders, senders, options.edge, options.uplink)


def _senders(options: Options) -> int:
    """Return the number of senders in the set-ups incast and uplink, 0 elsewhere."""
    if options.setup == "tree" or options.topology is not None:
        if options.senders is not None:
            problem, fix = "only incast and uplink have them", "choose such a set-up"
            raise ConfigError("", "senders", problem, fix)
        return 0
    senders = 5 if options.senders is None else options.senders
    if not 1 <= senders <= 10_000:
        raise ConfigError("", "senders", f"{senders}", "from 1 to 10000")
    return senders


def _rows(options: Options) -> int:
    """Return the rows of the paper's tree; default 4, the paper's smallest."""
    if options.hosts is not None and (options.hosts < ROW or options.hosts % ROW):
        problem = f"{options.hosts} do not fill rows of 10 racks of 20"
        raise ConfigError("", "hosts", problem, f"a multiple of {ROW}, or a topology file")
    rows = options.rows if options.hosts is None else options.hosts // ROW
    if rows is not None and not 1 <= rows <= 327:
        raise ConfigError("", "rows", f"{rows}", "from 1 to 327: at most 65535 hosts")
    return 4 if rows is None else rows


def _traffic(options: Options, topology: Topology) -> Traffic:
    rate = GREEDY if options.rate is None else float(parse_rate(options.rate))
    if count := _senders(options):
        senders = np.arange(count)
        if not 0 <= options.tcp <= count:
            raise ConfigError("", "tcp", f"{options.tcp}", f"from 0 to {count} senders")
        receiver = np.full(count, count) if options.setup == "incast" else senders + count
        return flows(senders, receiver, rate_bps=rate, tcp=options.tcp)
    if options.tcp:
        raise ConfigError("", "tcp", "only for the set-ups incast and uplink", "name [[flow]]s")
    if options.traffic == "halves":
        return halves(topology, rate_bps=rate)
    return shuffled(topology, rate_bps=rate, seed=options.seed)


def _named(topology: Topology, listed: tuple[FlowTable, ...]) -> Traffic:
    def host(index: int, key: str, name: str) -> int:
        found = topology.host_index(name)
        if found is None:
            fix = "a host of the topology"
            raise ConfigError("", f"flow[{index}].{key}", f"there is no host {name!r}", fix)
        return found

    numbered = list(enumerate(listed))
    return Traffic(
        np.array([host(index, "source", flow.source) for index, flow in numbered]),
        np.array([host(index, "destination", flow.destination) for index, flow in numbered]),
        np.array([_rate(index, flow) for index, flow in numbered]),
        np.array([flow.kind == "tcp" for flow in listed]),
    )


def _rate(index: int, flow: FlowTable) -> float:
    if flow.rate is None:
        return GREEDY
    if flow.kind == "tcp":
        key = f"flow[{index}].rate"
        raise ConfigError("", key, "TCP sends as its window allows", "leave it out, or kind udp")
    return float(parse_rate(flow.rate, field=f"flow[{index}].rate"))


def _seconds(seconds: float) -> int:
    if not 0 < seconds <= 3600:
        raise ConfigError("", "seconds", f"{seconds:g}", "above 0 and at most 3600")
    return round(seconds * 1e9)
