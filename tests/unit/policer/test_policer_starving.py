"""A router with a guarantee that lacks CPU is reported once, and once when that is over."""

from policer_plant import held_report
from round_rig import GOLD, Context

from policer.contracts.contract import Contract
from policer.decide.starvation import OVER, SURE
from xtc.wire import Finding, Report


def lacking(vr: str = "a") -> Report:
    return held_report(
        vr, 40e3, throughput_pps=10e3, offered_pps=40e3, binding=False, finding=Finding.STARVED
    )


def kinds(context: Context, report: Report, rounds: int) -> list[str]:
    played = [context.decide_round(report) for _ in range(rounds)]
    return [note.kind for one in played for note in one.notes if "starved" in note.kind]


def test_it_is_reported_once_after_some_rounds() -> None:
    context = Context(a=GOLD)
    assert kinds(context, lacking(), SURE - 1) == []
    assert kinds(context, lacking(), 100) == ["starved"]
    assert context.state.routers["a"].starving.on


def test_and_once_when_it_has_had_its_cpu_for_some_rounds() -> None:
    context = Context(a=GOLD)
    kinds(context, lacking(), SURE)
    assert kinds(context, held_report("a", 40e3), OVER - 1) == []
    assert kinds(context, held_report("a", 40e3), 100) == ["not_starved"]


def test_a_round_now_and_then_is_not_reported() -> None:
    context = Context(a=GOLD)
    for _ in range(20):
        assert kinds(context, lacking(), SURE - 1) == []
        assert kinds(context, held_report("a", 40e3), 1) == []


def test_one_that_was_guaranteed_nothing_is_not_reported() -> None:
    context = Context(a=Contract(0, ceiling_pps=90e3))
    assert kinds(context, lacking(), 50) == []
    assert kinds(Context(), lacking(), 50) == []
