"""The experiments of the XCo paper: its benchmarks in the lab, in three ways each."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from benchmarks.evaluation.plan import Experiment, Metric
from benchmarks.evaluation.programs.program import Program, kept
from benchmarks.evaluation.result import Value
from lab.traffic.roles import DATAGRAM_BYTES

WAYS: Final = {
    "uncoordinated": "no control",
    "rate": "ours, rates",
    "timeslice": "ours, timeslices",
    "timeslice, kept": "timeslices never returned",
}
NONE, RATES, SLICES, KEEPING = WAYS.values()
GOODPUT: Final = "goodput, % of the link"
ARGUMENTS: Final = "--short --seconds 1 --ways uncoordinated rate timeslice"
QUICK_ARGUMENTS: Final = "--short --seconds 1 --ways uncoordinated timeslice"
FULL_FRAME: Final = 1514
RUN_S: Final = 25.0
QUICK_RUN_S: Final = 17.0
Row = Mapping[str, Any]
Found = tuple[str, str, str, float | None]


def way_of(row: Row) -> str:
    """Return the way of a row in the words of the report."""
    name = str(row["way"])
    return WAYS.get(name, name)


def experiment(  # noqa: PLR0917  one table of experiments below
    name: str,
    title: str,
    figures: str,
    metrics: tuple[Metric, ...],
    values: Callable[[Row, float], Iterable[Found]],
    published: dict[tuple[str, str, str], float],
    seconds: float = RUN_S,
    quick_arguments: str = QUICK_ARGUMENTS,
) -> Experiment:
    """Return an experiment of one of the benchmarks; values take a row and the link's rate."""

    def read(found: Any) -> Iterator[Value]:
        link = float(found["bottleneck_bps"])
        for row in found["rows"]:
            yield from kept(values(row, link))

    program = Program(f"xco.{name}", ARGUMENTS, quick_arguments, read)
    return Experiment(
        name=f"xco-{name}",
        paper="XCo",
        title=title,
        figures=figures,
        metrics=metrics,
        cells=program.cells(seconds),
        quick_cells=program.cells(min(seconds, QUICK_RUN_S)),
        bench=program.bench,
        method=program.method,
        published=published,
    )


def reads(row: Row, link: float) -> Iterator[Found]:
    """Return the goodput of reads from several targets or servers."""
    number = row.get("targets", row.get("servers"))
    yield way_of(row), f"{number} targets", GOODPUT, row["goodput_bps"] / link * 100


def mix(row: Row, link: float) -> Iterator[Found]:
    """Return goodput and inequality of a mix of TCP and UDP."""
    point = f"{row['udp_senders']} send UDP"
    yield way_of(row), point, GOODPUT, (row["tcp_bps"] + row["udp_bps"]) / link * 100
    yield way_of(row), point, UNEQUAL, row["unequal"] * 100


def short(row: Row, link: float) -> Iterator[Found]:
    """Return the long flow and all flows next to sequences of short ones."""
    point = f"{row['sequences']} sequences"
    yield way_of(row), point, LONG, row["long_bps"] / link * 100
    yield way_of(row), point, GOODPUT, (row["long_bps"] + row["short_bps"]) / link * 100


def ping(row: Row, link: float) -> Iterator[Found]:
    """Return the longest round trip."""
    del link
    yield way_of(row), f"pinged from: {row['pinger']}", LONGEST, row["max_ms"]


def conservation(row: Row, link: float) -> Iterator[Found]:
    """Return the used part of the link next to slow senders."""
    used = row["goodput_bps"] * FULL_FRAME / DATAGRAM_BYTES / link
    yield way_of(row), "3 slow and 2 greedy", USED, used * 100


def migration(row: Row, link: float) -> Iterator[Found]:
    """Return the link's use and the seconds of a migration; an aborted one has none."""
    point = f"{row['senders']} send {row['kind']}"
    yield way_of(row), point, USED, row["seen"]["wire_bps"] / link * 100
    yield way_of(row), point, TOOK, row["seconds"]


def responsiveness(row: Row, link: float) -> Iterator[Found]:
    """Return the silence at a change of senders, and the delay of a first packet."""
    del link
    yield way_of(row), "changes of senders", SILENCE, row["silence_p50_ms"]
    yield way_of(row), "changes of senders", FIRST, row["first_p50_ms"]


UNEQUAL: Final = "largest distance from the mean share, %"
LONG: Final = "long flow, % of the link"
LONGEST: Final = "longest round trip, ms"
USED: Final = "use of the link, %"
TOOK: Final = "duration, s"
SILENCE: Final = "silence at a change, ms"
FIRST: Final = "first packet of a new sender, ms"
BETTER: Final = Metric(GOODPUT, "higher")
OURS: Final = (RATES, SLICES)
EXPERIMENTS: Final = (
    experiment(
        "reads",
        "Parallel reads of one client from several targets",
        "Fig. 2 and 13: 842 to 305 Mb/s of 1 Gb/s without control, 670 with XCo",
        (BETTER,),
        reads,
        {(NONE, "8 targets", GOODPUT): 30.5} | {(way, "8 targets", GOODPUT): 67.0 for way in OURS},
    ),
    experiment(
        "incast",
        "Barrier reads of 1 MB blocks",
        "Fig. 3 and 14",
        (BETTER,),
        reads,
        {},
        23.1,
    ),
    experiment(
        "mix",
        "Five senders to one receiver, some of them with UDP",
        "Fig. 4, 15 and 20: about 1 Gb/s of 1 Gb/s with XCo",
        (BETTER, Metric(UNEQUAL, "lower")),
        mix,
        {(way, f"{n} send UDP", GOODPUT): 100.0 for way in OURS for n in (0, 2, 5)},
        22.5,
    ),
    experiment(
        "short",
        "One long TCP flow next to sequences of short ones",
        "Fig. 6, 7 and 17: 89 Mb/s of 1 Gb/s without control, 430 with XCo; in total 280 and 590",
        (BETTER, Metric(LONG, "higher")),
        short,
        {(NONE, "400 sequences", LONG): 8.9, (NONE, "400 sequences", GOODPUT): 28.0}
        | {(way, "400 sequences", LONG): 43.0 for way in OURS}
        | {(way, "400 sequences", GOODPUT): 58.8 for way in OURS},
        20.0,
    ),
    experiment(
        "ping",
        "Round trips next to senders that fill the link",
        "Fig. 8 and 18: up to 20 ms without control, 2 ms with XCo",
        (Metric(LONGEST, "lower"),),
        ping,
        {(NONE, f"pinged from: {one}", LONGEST): 20.0 for one in ("quiet", "busy")}
        | {(way, f"pinged from: {one}", LONGEST): 2.0 for way in OURS for one in ("quiet", "busy")},
        14.5,
    ),
    experiment(
        "conservation",
        "Three slow and two greedy UDP senders",
        "Fig. 21: 300 Mb/s of 1 Gb/s without control, 800 with XCo, 500 without work conservation",
        (Metric(USED, "higher"),),
        conservation,
        {(NONE, "3 slow and 2 greedy", USED): 30.0, (KEEPING, "3 slow and 2 greedy", USED): 50.0}
        | {(way, "3 slow and 2 greedy", USED): 80.0 for way in OURS},
        14.0,
    ),
    experiment(
        "migration",
        "A live migration next to senders",
        "Fig. 19: the link is below 500 Mb/s of 1 Gb/s without control, 950 with XCo",
        (Metric(USED, "higher"), Metric(TOOK, "lower")),
        migration,
        {(NONE, f"2 send {kind}", USED): 50.0 for kind in ("TCP", "UDP")}
        | {(way, f"2 send {kind}", USED): 95.0 for way in OURS for kind in ("TCP", "UDP")},
        66.0,
        "--short --seconds 1 --ways timeslice",  # without control, one is given up after 20 s
    ),
    experiment(
        "responsiveness",
        "A change of the senders",
        "Fig. 22: below 10 ms; 75 ms once for a new pair of machines",
        (Metric(SILENCE, "lower"), Metric(FIRST, "lower")),
        responsiveness,
        {(way, "changes of senders", SILENCE): 10.0 for way in OURS}
        | {(way, "changes of senders", FIRST): 75.0 for way in OURS},
        9.2,
    ),
    experiment(
        "uplink",
        "Seven pairs over one uplink of a fifth of their links",
        "Fig. 5 and 16, scaled from 13 senders",
        (BETTER, Metric(UNEQUAL, "lower")),
        mix,
        {},
        30.2,
    ),
)
