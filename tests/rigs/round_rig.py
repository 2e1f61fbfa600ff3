"""Plays rounds of one host on what it is shown."""

from collections.abc import Mapping
from dataclasses import replace

from policer_plant import held_report

from policer.contracts.contract import Contract
from policer.contracts.ladder import Punishment, Step
from policer.decide.evidence import Evidence
from policer.decide.round import decide_round
from policer.decide.state import HostState, HostView, Policy, Round, RouterState
from policer.decide.telemetry import HostTelemetry
from xtc.wire import HostDrops, Report

CAPACITY = 100e3
GOLD = Contract(guarantee_pps=40e3)
LADDER = Contract(guarantee_pps=10e3, measures=tuple(Step))
ALWAYS = Contract(guarantee_pps=10e3, measures=tuple(Step), punish="always")


def telemetry(now: float, *reports: Report, distrust: str = "") -> HostTelemetry:
    routers = {report.vr: report for report in reports}
    return HostTelemetry(now, 1000.0 + now, int(now), routers, distrust=distrust)


class Context:
    """Plays rounds on what it is shown, one a second."""

    def __init__(self, **contracts: Contract) -> None:
        self.contracts: Mapping[str, Contract] = contracts
        self.policy = Policy()
        self.state = HostState()
        self.busiest_cpu: float | None = None
        self.drops: HostDrops | None = None
        self.now = 0.0

    def decide_round(self, *reports: Report, rounds: int = 1, distrust: str = "") -> Round:
        for _ in range(rounds):
            self.now += 1.0
            seen = telemetry(self.now, *reports, distrust=distrust)
            seen = replace(seen, busiest_cpu=self.busiest_cpu, drops=self.drops)
            view = HostView(CAPACITY, self.contracts, seen)
            played = decide_round(self.now, view, self.state, self.policy)
            self.state = played.state
        return played

    def punish(self, vr: str, height: int, *, guilty: bool = True) -> None:
        step = self.contracts[vr].measures[height - 1]
        state = RouterState(Evidence(guilty=guilty), Punishment(height, self.now, guilty, step))
        self.state = replace(self.state, routers={**self.state.routers, vr: state})

    def height(self, vr: str) -> int:
        return self.state.routers[vr].punishment.height


def flood(vr: str = "b", setpoint: float = 20e3, **changed: object) -> Report:
    return held_report(vr, setpoint, **({"offered_pps": 20 * setpoint} | changed))


def full(vr: str = "a", setpoint: float = 75e3) -> Report:
    return held_report(vr, setpoint)
