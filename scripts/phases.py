"""Run the tests in phases, all of them regardless of failures, and add up the results.

Tests that check rates and times of real packets run two files at a time, since each leaves much of
the machine to the other; the others run four at a time. The exit code is 0 only if that of every
phase is.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
INTEGRATION: Final = ROOT / "tests/integration"
ALONE: Final = [ROOT / "tests" / name for name in ("property", "unit")]
RATES: Final = (
    *("libvirt_qemu", "daemon_operator", "libvirt_lxc", "daemon_holds", "training_lab"),
    "training_libvirt",
    *("daemon_*", "xco_lab", "libvirt_*", "limiter_*", "actuator_*", "hostdrops_*"),
    *("xco_fail_open", "xco_gate_netns"),
)
"""Files that check rates, by their names after `test_`; the longest come first."""
SLOW_BESIDE: Final = (
    *("packages_installed", "notebook_runs", "zovn_killed", "policer_service"),
    *("policer_page_live", "zovn_vhost", "xco_gcc_ways_netns", "policer_following_hosts"),
    *("policer_cli_serve", "policer_page_forms", "policer_page_access", "walkthrough"),
    *("policer_serve", "policer_daemon", "xco_places_netns", "policer_page_overrides"),
    *("policer_killed_in_turns", "xco_package", "policer_package", "training_faults"),
    *("xco_vms_between_netns", "zovn_hostile_messages", "xco_command", "zovn_wire_kind"),
    *("zovn_check_netns", "xco_port_agent", "policer_rest_postgres", "policer_page_axe"),
    *("zovn_watchdog", "zovn_sessions", "xco_hygenicc_netns", "zovn_overload", "xco_vms_netns"),
    *("policer_postgres", "policer_page", "zovn_commands", "training_fleet_page"),
    *("xco_coordinator", "policer_page_views", "policer_page_status", "policer_soak_small"),
    *("zovn_veth_kind", "zovn_threads", "deploy_package", "training_report_page", "lab_machines"),
    *("zovn_package", "lab_fabric", "policer_fuzz", "sandbox"),
)
"""The longest of the other tests on real namespaces, databases and browsers: they come first.

Those of single packages come when `packages_installed` has built them all.
"""
SLOW_ALONE: Final = (
    *("policer_rest_reach", "xco_dumbbell", "training_fleet", "training_points"),
    *("training_shape", "training_report", "training_verdict", "property_training"),
    *("policer_rest_reach_shared", "cli_recovery", "training_planner", "policer_rest_crash"),
    *("training_fit", "policer_store_classes", "policer_store_reach", "zovn_sessions_end"),
    *("xco_simulate", "training_loads", "xco_native", "training_export", "daemon"),
    *("property_policer_fleetfile", "words", "policer_rest_following", "policer_oidc_rest"),
    *("property_cost", "zovn_model", "policer_store_plans", "policer_rest_streams", "zovn_fuzz"),
    *("property_law", "training_fleetsummary", "promise_4_domains", "training_ratio", "deploy"),
    *("property_virt_manager", "stateful_manager", "property_policer_allocation", "holder"),
)
"""The longest unit and property tests."""
SLOWEST: Final = ("--durations", "25", "--durations-min", "2")
COUNTS: Final = ("passed", "failed", "error", "skipped", "inconclusive")


@dataclass(frozen=True)
class Phase:
    """One run of pytest: its files and options."""

    name: str
    places: Sequence[str]
    options: Sequence[str] = ()
    budget: int = 0
    """How many of its tests may stay inconclusive on a busy machine."""


@dataclass
class Outcome:
    """Result of a phase; without counts, pytest itself ended early."""

    phase: str
    exit_code: int
    counts: dict[str, Any] = field(default_factory=dict)


def phases() -> list[Phase]:
    """Return the phases of `make test`, in their order."""
    found = [file for name in RATES for file in sorted(INTEGRATION.rglob(f"test_{name}.py"))]
    rates = list(dict.fromkeys(found))
    beside = ordered(SLOW_BESIDE, set(INTEGRATION.rglob("test_*.py")) - set(rates))
    alone = ordered(SLOW_ALONE, (file for place in ALONE for file in place.rglob("test_*.py")))
    others = [*woven(beside, alone), ROOT / "tests/system"]
    return [
        Phase("rates", [str(file) for file in rates], at_once(2), budget=5),
        Phase("others", [str(place) for place in others], at_once(4), budget=3),
    ]


def ordered(names: Sequence[str], files: Iterable[Path]) -> list[Path]:
    """Return files: the named ones first, in the order of their names."""
    places = {f"test_{name}.py": place for place, name in enumerate(names)}
    return sorted(files, key=lambda file: (places.get(file.name, len(places)), file))


def woven(few: Sequence[Path], many: Sequence[Path]) -> list[Path]:
    """Merge two lists in their order, with the shorter spread over the longer.

    Tests on real systems mostly wait, the others mostly compute: together they take the least time.
    """
    spread = [(place / len(one), file) for one in (few, many) for place, file in enumerate(one)]
    return [file for _, file in sorted(spread)]


def at_once(files: int) -> list[str]:
    """Return pytest's options for a number of files at a time."""
    return ["-n", str(files), "--dist", "loadfile", "--no-loadscope-reorder", *SLOWEST]


def run(phase: Phase, options: Sequence[str]) -> Outcome:
    """Run one phase and return its result."""
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        command = [sys.executable, "-m", "pytest", *phase.options, *phase.places, *options]
        command += ["--inconclusive-budget", str(phase.budget), "--summary", str(summary)]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603  our own
        counts = json.loads(summary.read_text()) if summary.exists() else {}
    return Outcome(phase.name, code, counts)


def strict() -> list[str]:
    """Return the option that makes skips fail where all requirements can be installed."""
    installable = os.geteuid() == 0 and Path("/etc/debian_version").exists()
    return ["--fail-on-skip"] if os.environ.get("CI") and installable else []


def lines(outcome: Outcome) -> list[str]:
    """Describe the result of a phase."""
    if not outcome.counts:
        return [f"{outcome.phase}: pytest ended early with exit code {outcome.exit_code}"]
    counts = outcome.counts
    said = ", ".join(f"{counts[name]} {name}" for name in COUNTS if counts[name])
    took = f"{counts['seconds']:.0f} s, longest stall of a CPU {counts['longest_stall_s']:.2f} s"
    state = "ok" if outcome.exit_code == 0 else f"failed (exit code {outcome.exit_code})"
    return [
        f"{outcome.phase}: {state}: {said} in {took}",
        *(f"  FAILED {name}" for name in counts["failures"]),
        *(f"  INCONCLUSIVE {name}" for name in counts["not_judged"]),
    ]


def total(outcomes: Sequence[Outcome]) -> str:
    """Return the closing line."""
    add = {name: sum(one.counts.get(name, 0) for one in outcomes) for name in COUNTS}
    failed = add["failed"] + add["error"]
    return (
        f"{add['passed']} passed, {failed} failed, {add['skipped'] + add['inconclusive']} skipped"
    )


def main() -> int:
    """Run the phases of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phase", choices=[one.name for one in phases()], help="run this one only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes to a file")
    options, passed_on = parser.parse_known_args()
    chosen = [one for one in phases() if options.phase in {None, one.name}]
    outcomes = [run(phase, [*strict(), *passed_on]) for phase in chosen]
    sys.stdout.write("\n".join(["", *(line for one in outcomes for line in lines(one)), ""]))
    sys.stdout.write(total(outcomes) + "\n")
    if options.json is not None:
        found = {one.phase: {"exit_code": one.exit_code, **one.counts} for one in outcomes}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    # A killed phase has a negative code, which the largest one would hide.
    return int(any(outcome.exit_code for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
