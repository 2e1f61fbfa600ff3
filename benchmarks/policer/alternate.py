"""Two policers on one database, with repeated kills of the leader: is any order obeyed twice?

Both are real (`policer serve`), on SQLite and then on a PostgreSQL of the benchmark's own; they are
killed in turns with SIGKILL, at any moment of their rounds, and started again. The hosts are
simulated (`benchmarks.policer.alternate_hosts`): they record every order that comes, and obey by
the daemon's own rules. Their records must show that

- no order was obeyed twice, and none after one that was given later;
- no order of a lower epoch was obeyed, on any router of a host, after one of a higher epoch;
- no two leads had the same epoch;
- no setpoint ran out, at any of the kills.

The exit code is 1 if one of these does not hold. The time without a leader is printed for each
kill.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec
import zmq.auth
from rich.console import Console
from rich.table import Table

from benchmarks.policer.alternate_hosts import Kept
from benchmarks.policer.alternate_judged import Proof, Turn, proof_of
from benchmarks.policer.hosts import CAPACITY, PROMISED
from benchmarks.policer.postgres import own_server
from benchmarks.policer.rig import Policer, enter
from common.arguments import whole_number
from policer.contracts.contract import Contract
from policer.contracts.host import Host

NAMES: Final = ("one", "two")
SETTLED_S: Final = 3.0
"""Range of the random delay from full obedience to a leader's kill."""
LOOK_EVERY_S: Final = 0.02
LONGEST_S: Final = 120.0


class Pair:
    """Two policers that share a database, and the current leader."""

    def __init__(self, folder: Path, url: str, secret: str, keys: Path) -> None:
        self._folder, self._url, self._secret, self._keys = folder, url, secret, keys
        self._starts = 0
        self._running: dict[str, Policer] = {}

    def start(self, name: str) -> None:
        """Start one, and wait until it answers."""
        self._starts += 1
        folder = self._folder / f"{name}{self._starts}"
        policer = Policer(folder, self._url, self._secret, name, keys=self._keys)
        self._running[name] = policer.__enter__()

    def kill(self, name: str) -> float:
        """Kill one as a loss of power would; return when."""
        policer = self._running.pop(name)
        at = time.monotonic()
        policer.kill()
        policer.__exit__(None, None, None)
        return at

    def end(self) -> None:
        """Stop both."""
        for policer in self._running.values():
            policer.__exit__(None, None, None)

    def leader(self, above: int) -> tuple[str, int]:
        """Wait until one leads in an epoch above this one; return its name and its epoch."""
        deadline = time.monotonic() + LONGEST_S
        while time.monotonic() < deadline:
            for name, policer in self._running.items():
                known = policer.get("/v1/leadership")
                if known["leading"] and known["epoch"] > above:
                    return name, int(known["epoch"])
            time.sleep(LOOK_EVERY_S)
        raise RuntimeError("no policer leads:\n" + "\n".join(p.log for p in self._running.values()))

    def until_held(self, hosts: int) -> None:
        """Wait until the leader holds the routers of all hosts, and polices them."""
        deadline = time.monotonic() + LONGEST_S
        while time.monotonic() < deadline:
            views = {name: _lives(policer) for name, policer in self._running.items()}
            for lives in views.values():
                if sum(live["engaged"] and not live["refused"] for live in lives) == hosts:
                    return
            time.sleep(0.2)
        logs = "\n".join(policer.log for policer in self._running.values())
        raise RuntimeError(f"not all hosts are held: {json.dumps(views, indent=1)}\n{logs}")


def _lives(policer: Policer) -> list[dict[str, Any]]:
    return [item["live"] for item in policer.get("/v1/hosts?limit=500")["items"]]


@contextmanager
def witnesses(hosts: int, routers: int) -> Iterator[tuple[list[Host], "subprocess.Popen[str]"]]:
    """Yield the entries of simulated hosts, and the process that they are in."""
    command = [sys.executable, "-m", "benchmarks.policer.alternate_hosts", str(hosts), str(routers)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    try:
        assert process.stdout is not None
        yield msgspec.json.decode(process.stdout.readline(), type=list[Host]), process
    finally:
        process.kill()
        process.communicate()


def prove(  # noqa: PLR0917  each is one condition of the proof
    database: str, url: str, folder: Path, kills: int, hosts: int, routers: int
) -> Proof:
    """Kill leaders in turns, and return what the hosts obeyed."""
    with ExitStack() as stack:
        entries, process = stack.enter_context(witnesses(hosts, routers))
        folder.mkdir(parents=True, exist_ok=True)
        _, key = zmq.auth.create_certificates(folder, "policer")
        Path(key).chmod(0o600)
        promise = Contract(guarantee_pps=PROMISED * CAPACITY / routers)
        terms = {f"vr{number}": promise for number in range(routers)}
        secret = enter(url, entries, {host.name: terms for host in entries})
        pair = Pair(folder, url, secret, Path(key))
        stack.callback(pair.end)
        for name in NAMES:
            pair.start(name)
        turns = list(_killed(pair, kills, hosts))
        kept = _kept(process)
    return proof_of(database, turns, kept)


def _killed(pair: Pair, kills: int, hosts: int) -> Iterator[Turn]:
    """Kill the leader, start it again, and so on."""
    name, epoch = pair.leader(above=0)
    for _ in range(kills):
        pair.until_held(hosts)
        time.sleep(random.uniform(0.0, SETTLED_S))  # noqa: S311  any moment will do
        killed_at = pair.kill(name)
        following, higher = pair.leader(above=epoch)
        yield Turn(name, epoch, killed_at, time.monotonic())
        pair.start(name)
        name, epoch = following, higher
    pair.until_held(hosts)
    yield Turn(name, epoch, float("inf"), float("inf"))


def _kept(process: "subprocess.Popen[str]") -> Kept:
    out, _ = process.communicate("end\n", LONGEST_S)
    return msgspec.json.decode(out, type=Kept)


def main() -> None:
    """Check and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--kills", type=whole_number(1), default=10, help="on each database")
    parser.add_argument("--hosts", type=whole_number(1), default=20)
    parser.add_argument("--routers", type=whole_number(1), default=10, help="of each host")
    parser.add_argument("--database", choices=["sqlite", "postgresql", "both"], default="both")
    options = parser.parse_args()
    proofs = list(_proofs(options))
    if options.json:
        print(json.dumps([asdict(proof) | {"holds": proof.holds} for proof in proofs], indent=2))
    else:
        for proof in proofs:
            _print(proof)
    sys.exit(not all(proof.holds for proof in proofs))


def _proofs(options: argparse.Namespace) -> Iterator[Proof]:
    sizes = options.kills, options.hosts, options.routers
    with tempfile.TemporaryDirectory(prefix="xtc-alternate-") as name:
        if options.database != "postgresql":
            folder = Path(name) / "sqlite"
            yield prove("SQLite", f"sqlite:///{name}/policer.db", folder, *sizes)
        if options.database != "sqlite":
            with own_server() as server:
                if server is None:
                    sys.exit("PostgreSQL's server is not installed (apt install postgresql)")
                with server.database() as url:
                    yield prove("PostgreSQL", url, Path(name) / "postgresql", *sizes)


def _print(proof: Proof) -> None:
    table = Table(box=None, header_style="bold", title=proof.database, title_justify="left")
    for heading in ("killed", "epoch", "no leader", "first host obeys", "all obey"):
        table.add_column(heading, justify="right")
    for kill in proof.kills:
        times = kill.without_s, kill.obeyed_s, kill.all_obeyed_s
        table.add_row(kill.killed, str(kill.epoch), *(f"{seconds:.2f} s" for seconds in times))
    console = Console(highlight=False, width=120)
    console.print(table)
    console.print(
        f"{'holds' if proof.holds else 'FAILS'}: {proof.orders} orders obeyed; {len(proof.twice)}"
        f" came twice, {len(proof.not_rising)} were obeyed after a later one,"
        f" {len(proof.lower_epoch)} of a lower epoch after a higher; {proof.lapsed} setpoints ran"
        f" out; refused: {proof.refused or 'none'}; epochs {proof.epochs}"
    )


if __name__ == "__main__":
    main()
