"""Reaction times of the policer on real packets: to a flood, its own death, and its leader's.

Set-up: the host of `benchmarks.policer.sharing`, where one Dom0 core pays for every packet that it
sends into a router. Gold gets half of Dom0's capacity as load, and has a contract for a little
more; bronze has a contract for a fifth, and is flooded with all that Dom0 could carry alone.

1. From the flood's first second until gold's guarantee is restored: that second, and the mean of
   five from it on, is at least 95 % of what gold forwarded before the flood, which was all that it
   was offered. A flood that never harmed gold counts as 0 s.
2. The policer is killed: until the daemon has released both routers and lifted the limit. 3. With
two policers on PostgreSQL, the leader is killed: until the daemon obeys the other one's epoch.
Meanwhile no setpoint may be lost, and none obeyed twice: every lease that the daemon reports as
obeyed must be above those before it (`benchmarks.policer.obedience`).
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.figures import Samples, mean
from benchmarks.policer.obedience import Tap, not_rising
from benchmarks.policer.postgres import own_server
from benchmarks.policer.rig import Policer, enter
from benchmarks.policer.runqueue import RunQueue, Tasks, threads_of
from benchmarks.policer.sharing import BACK, INTO, TOO_MUCH
from benchmarks.policer.timeline import draw
from benchmarks.rig import Rig, lab_missing, lab_router
from common.arguments import whole_number
from common.units import format_rate
from lab.programs.processes import Source
from lab.routers.topology import Lab
from policer.contracts.contract import Contract
from policer.contracts.host import Host
from xtc.daemon.server import REQUESTS, TELEMETRY
from xtc.wire import Deactivate, HostDrops, Limit, Mode, Report

PREFIX: Final = "xtcreact"
GOLD, BRONZE = VRS = ("gold", "bronze")
OFFERED, PROMISED, PROMISED_BRONZE = 0.5, 0.55, 0.2
"""Of what Dom0 carries."""
RESTORED: Final = 0.95
WINDOW: Final = 5
"""Number of seconds in the mean that counts as restored."""
TTL_S: Final = 15.0
"""Of the policer's leases, by default."""
LONGEST_S: Final = 60.0
BEFORE: Final = 8
"""Seconds before a flood in which gold's throughput is measured."""
WATCHED: Final = 60
"""Seconds of a flood."""
HELD: Final = 12
"""Seconds after which a flooded router is held."""


@dataclass(frozen=True)
class Reaction:
    """One flood, and one policer killed; seconds. None: not within a minute."""

    restored_s: float | None
    harmed_s: float
    """Seconds in which gold had less than 95 % of what it had before."""
    worst: float
    """Gold's throughput in its worst second, as a share of that before."""
    before: float
    """Its throughput before the flood, as a share of its offered load: 1 on a quiet machine."""
    held_s: float | None
    """Until bronze was held at a setpoint."""
    limited_s: float | None
    """Until the host limited what it sends into bronze; None if not needed."""
    released_s: float | None
    """From the policer's death until nothing was held or limited."""
    guarantee_pps: float
    """Of gold."""
    trace: list[dict[str, float | None]]
    """Second by second: offered load, throughput, and the state of both routers."""
    cpu: list[dict[str, Any]]
    """Second by second: tasks that ran, and that waited for a CPU
    (`benchmarks.policer.runqueue`)."""


@dataclass(frozen=True)
class Failover:
    """One leader killed."""

    obeyed_s: float | None
    """Until the daemon obeyed the next leader's epoch."""
    lost: int
    """Seconds in which a router that should be held was not."""
    epochs: tuple[int, int]
    """The leader's that was killed, and the next one's."""
    obeyed: int
    """Leases of both leaders that the daemon reported as obeyed."""
    twice: int
    """Those that were not above all before them: obeyed twice, or after their successors."""


class Bench:
    """A host with its daemon, for a sequence of policers."""

    def __init__(self, lab: Lab, rig: Rig) -> None:
        self._rig = rig
        self._lab = lab
        self._gold, self._bronze = (lab.routers[vr].flood(0.0) for vr in (GOLD, BRONZE))
        self.capacity = self._capacity()

    def _capacity(self) -> float:
        """Return Dom0's throughput for one flood, in packets/s."""
        self._bronze.set_rate(TOO_MUCH)
        self._rig.wait_for_ticks(8)
        self._bronze.set_rate(0.0)
        return mean(self._rig.recording.throughput(BRONZE)[-5:])

    def react(self, folder: Path) -> Reaction:
        """Flood bronze, see gold restored, kill the policer, see everything released."""
        self._quiet()
        url = f"sqlite:///{folder}/policer.db"
        secret = self._enter(folder, url, self._requests)
        with (
            Policer(folder, url, secret) as policer,
            RunQueue(self._tasks(policer)) as queue,
        ):
            self._until_heard(policer)
            self._rig.wait_for_ticks(BEFORE)
            before = mean(self._rig.recording.throughput(GOLD)[-BEFORE:])
            flooded_at = self._flood(self._bronze)
            self._rig.wait_for_ticks(WATCHED)
            seen = self._since(flooded_at)
            policer.kill()
            killed_at = time.monotonic()
        cpu = [second.as_json(flooded_at) for second in queue.between(flooded_at - 5, killed_at)]
        return self._judge(seen, before, flooded_at, self._when(killed_at, _free), cpu)

    def _tasks(self, policer: Policer) -> Tasks:
        """Return the groups of threads to watch."""
        routers = {vr: partial(threads_of, self._lab.routers[vr].forwarder_pid) for vr in VRS}
        return {
            **routers,
            "flood": partial(threads_of, self._bronze.pid),
            "Dom0": lambda: self._lab.dom0_threads,
            "daemon": partial(threads_of, self._rig.pid),
            "policer": partial(threads_of, policer.pid),
        }

    def _judge(
        self,
        seen: dict[str, list[tuple[float, Report]]],
        before: float,
        at: float,
        released_s: float | None,
        cpu: list[dict[str, Any]],
    ) -> Reaction:
        drops = self._rig.recording.drops()
        gold = [(when, r.throughput_pps / before) for when, r in seen[GOLD] if r.throughput_pps]
        return Reaction(
            restored_s=restored(gold, at),
            harmed_s=float(sum(value < RESTORED for _, value in gold)),
            worst=min(value for _, value in gold),
            before=before / (OFFERED * self.capacity),
            held_s=_first(seen[BRONZE], at, lambda r: r.active and r.mode is Mode.CLOSED_LOOP),
            limited_s=_first(seen[BRONZE], at, lambda r: r.limit_pps is not None),
            released_s=released_s,
            guarantee_pps=PROMISED * self.capacity,
            cpu=cpu,
            trace=[
                _line(g, b, at) | _dropped(drops.get(g[0]))
                for g, b in zip(seen[GOLD], seen[BRONZE], strict=False)
            ],
        )

    def fail_over(self, folder: Path, url: str) -> Failover:
        """Run two policers on one database, kill the leader, and watch the other."""
        self._quiet()
        with ExitStack() as stack:
            tap = stack.enter_context(Tap(folder / "tap", self._requests))
            secret = self._enter(folder, url, tap.address)
            policers = {
                name: stack.enter_context(Policer(folder / name, url, secret, name))
                for name in ("one", "two")
            }
            self._flood(self._bronze)
            self._rig.wait_for_ticks(HELD)
            leader = next(iter(policers.values())).get("/v1/leadership")
            before = self._epoch()
            policers[leader["holder"]].kill()
            killed_at = time.monotonic()
            obeyed_s = self._when(killed_at, lambda _: self._epoch() > before)
            self._rig.wait_for_ticks(int(TTL_S) + 2)
            after = self._since(killed_at)
        self._check(tap)
        lost = sum(not r.active or r.setpoint_pps is None for _, r in after[BRONZE])
        twice = len(not_rising(tap.obeyed))
        return Failover(obeyed_s, lost, (before, self._epoch()), len(tap.obeyed), twice)

    def _check(self, tap: Tap) -> None:
        """Check that the leases in the daemon's journal are the last that the tap saw obeyed.

        Raises:
            RuntimeError: they are not, so the tap is no evidence.
        """
        self._rig.wait_for_ticks(2)
        leases = self._journal()["leases"]
        held = {vr: (lease["epoch"], lease["sequence"]) for vr, lease in leases.items()}
        seen = {vr: lease.order for vr, lease in tap.last().items() if vr in held}
        if not held or held != seen:
            raise RuntimeError(f"the daemon holds {held}, and was seen to obey {seen}")

    @property
    def _requests(self) -> str:
        """The daemon's own socket."""
        return f"ipc://{self._rig.folder / 'run' / REQUESTS}"

    def _enter(self, folder: Path, url: str, requests: str) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        top = self.capacity
        host = Host(
            name="lab",
            requests=requests,
            telemetry=f"ipc://{self._rig.folder / 'run' / TELEMETRY}",
            capacity_pps=top,
        )
        contracts = {
            GOLD: Contract(guarantee_pps=PROMISED * top),
            BRONZE: Contract(guarantee_pps=PROMISED_BRONZE * top),
        }
        return enter(url, [host], {"lab": contracts})

    def _flood(self, source: Source) -> float:
        source.set_rate(self.capacity)
        return time.monotonic()

    def _quiet(self) -> None:
        """Give gold the host to itself."""
        self._bronze.set_rate(0.0)
        for vr in (GOLD, BRONZE):
            self._rig.client.call(Limit(vr, None))
        self._rig.client.call(Deactivate(None))
        self._gold.set_rate(OFFERED * self.capacity)
        self._rig.wait_for_ticks(4)

    def _until_heard(self, policer: Policer) -> None:
        deadline = time.monotonic() + LONGEST_S
        while not policer.get("/v1/hosts/lab")["live"]["reachable"]:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the policer does not hear the host:\n{policer.log[-2000:]}")
            time.sleep(0.1)
        self._rig.wait_for_ticks(3)

    def _since(self, at: float) -> dict[str, list[tuple[float, Report]]]:
        return {
            vr: [(when, report) for when, report in self._rig.recording.of(vr) if when > at + 0.5]
            for vr in (GOLD, BRONZE)
        }

    def _when(self, since: float, holds: Callable[[dict[str, Report]], bool]) -> float | None:
        """Return the seconds until a condition holds; None if it does not within a minute."""
        while time.monotonic() < since + LONGEST_S:
            self._rig.wait_for_ticks(1)
            at, _ = self._rig.recording.of(GOLD)[-1]
            if holds({vr: self._rig.recording.of(vr)[-1][1] for vr in (GOLD, BRONZE)}):
                return round(at - since, 1)
        return None

    def _epoch(self) -> int:
        """Return the highest epoch that the daemon has obeyed."""
        return int(self._journal()["highest_epoch"])

    def _journal(self) -> Any:
        """Return the daemon's durable state."""
        raw = (self._rig.folder / "state" / "journal").read_bytes()
        return json.loads(raw.partition(b"\n")[2])


def _line(
    gold: tuple[float, Report], bronze: tuple[float, Report], at: float
) -> dict[str, float | None]:
    return {
        "at": round(gold[0] - at, 2),
        "gold_setpoint_pps": gold[1].setpoint_pps,
        "gold_cap": gold[1].cap,
        "gold_used": gold[1].used,
        "bronze_cap": bronze[1].cap,
        "bronze_used": bronze[1].used,
        "bronze_shield_pps": bronze[1].shield_pps,
        "gold_pps": gold[1].throughput_pps,
        "gold_entered_pps": gold[1].offered_pps,
        "bronze_pps": bronze[1].throughput_pps,
        "bronze_entered_pps": bronze[1].offered_pps,
        "bronze_setpoint_pps": bronze[1].setpoint_pps,
        "bronze_limit_pps": bronze[1].limit_pps,
    }


def _dropped(drops: HostDrops | None) -> dict[str, float | None]:
    """Return what the host dropped before any router."""
    return {
        "card_drops_pps": None if drops is None else sum(drops.cards.values()),
        "backlog_drops_pps": None if drops is None else drops.backlog,
    }


def _free(reports: dict[str, Report]) -> bool:
    return all(
        r.limit_pps is None and (not r.active or r.mode is Mode.RELEASED) for r in reports.values()
    )


def restored(samples: Samples, at: float) -> float | None:
    """Return the seconds until a sample, and the mean of five from it on, is 95 %, of shares.

    A sample belongs to the second that ends with it.
    """
    for index in range(len(samples) - WINDOW + 1):
        window = samples[index : index + WINDOW]
        if min(window[0][1], mean(window)) >= RESTORED:
            return max(0.0, round(samples[index][0] - at - 1.0, 1))
    return None


def _first(
    reports: Sequence[tuple[float, Report]], at: float, holds: Callable[[Report], bool]
) -> float | None:
    return next((round(when - at, 1) for when, report in reports if holds(report)), None)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the reactions and the failovers."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(PREFIX, beside=True))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xtc-react-")))
        for vr in (GOLD, BRONZE):
            lab.add_router(vr, "user-space").set_packet_cost(INTO, BACK)
        tables = {vr: lab_router(router) for vr, router in lab.routers.items()}
        bench = Bench(lab, stack.enter_context(Rig(tables, lab)))
        print(f"Dom0 carries {format_rate(bench.capacity)}", file=sys.stderr)
        reactions = []
        for run in range(options.runs):
            reactions.append(bench.react(folder / f"run{run}"))
            print(f"  {_brief(reactions[-1])}", file=sys.stderr)
        failovers = _fail_over(bench, folder, options.failovers)
    return {
        "capacity_pps": bench.capacity,
        "reactions": [asdict(reaction) for reaction in reactions],
        "failovers": [asdict(failover) for failover in failovers],
    }


def _fail_over(bench: Bench, folder: Path, runs: int) -> list[Failover]:
    """Measure on a private PostgreSQL; none if it is not installed."""
    if not runs:
        return []
    failovers: list[Failover] = []
    with own_server() as server:
        if server is None:
            return []
        for run in range(runs):
            with server.database() as url:
                failovers.append(bench.fail_over(folder / f"pg{run}", url))
            print(f"  {failovers[-1]}", file=sys.stderr)
    return failovers


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=whole_number(1), default=5)
    parser.add_argument("--plot", type=Path, help="a PNG of the run that took longest")
    parser.add_argument(
        "--failovers", type=whole_number(0), default=3, help="0 takes no PostgreSQL"
    )
    options = parser.parse_args()
    if missing := lab_missing():
        sys.exit("real packets need: " + "; ".join(missing))
    found = measure(options)
    if options.plot is not None:
        draw(max(found["reactions"], key=_took), options.plot)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        _print(found)


def _took(reaction: dict[str, Any]) -> float:
    """Return how long a reaction took; one that failed took longest."""
    restored_s = reaction["restored_s"]
    return LONGEST_S if restored_s is None else float(restored_s)


def _brief(reaction: Reaction) -> dict[str, Any]:
    return {n: value for n, value in asdict(reaction).items() if n not in {"trace", "cpu"}}


def _print(found: dict[str, Any]) -> None:
    console = Console(highlight=False, width=120)
    reactions = found["reactions"]
    for name, words in (
        ("restored_s", "flood to guarantee restored"),
        ("held_s", "flood to setpoints"),
        ("limited_s", "flood to limiter"),
        ("released_s", "policer killed to all routers released"),
    ):
        console.print(f"{words}: {_spread([reaction[name] for reaction in reactions])}")
    published = TTL_S + 1.0
    console.print(f"Published for the last: at most {published:.0f} s (docs/reference/timing.md).")
    for failover in found["failovers"]:
        console.print(
            f"leader killed to the next one obeyed: {failover['obeyed_s']} s; "
            f"{failover['lost']} s without setpoint, {failover['twice']} of "
            f"{failover['obeyed']} leases obeyed twice or late; epochs {failover['epochs']}"
        )


def _spread(values: list[float | None]) -> str:
    known = sorted(value for value in values if value is not None)
    if not known:
        return "never"
    never = f", never in {len(values) - len(known)} of {len(values)}" * (len(known) < len(values))
    return f"median {statistics.median(known):.1f} s, {known[0]:.1f} to {known[-1]:.1f} s{never}"


if __name__ == "__main__":
    main()
