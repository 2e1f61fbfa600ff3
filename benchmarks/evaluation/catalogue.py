"""All experiments of the evaluation, in the order of the report."""

from typing import Final

from benchmarks.evaluation.plan import Experiment
from benchmarks.evaluation.programs import gcc, xco, zovn
from benchmarks.evaluation.simpler import simpler
from benchmarks.evaluation.xtc import actuators, beside, fairness, hold, hops, six

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    hold.EXPERIMENT,
    actuators.EXPERIMENT,
    six.EXPERIMENT,
    beside.EXPERIMENT,
    fairness.EXPERIMENT,
    hops.EXPERIMENT,
    simpler.EXPERIMENT,
    *xco.EXPERIMENTS,
    *gcc.EXPERIMENTS,
    zovn.EXPERIMENT,
)
PAPERS: Final = tuple(dict.fromkeys(one.paper for one in EXPERIMENTS))


def chosen(only: str | None) -> tuple[Experiment, ...]:
    """Return the experiments whose names begin so; all without a name.

    Raises:
        ValueError: no experiment has that name.
    """
    found = tuple(one for one in EXPERIMENTS if only is None or one.name.startswith(only))
    if not found:
        names = ", ".join(one.name for one in EXPERIMENTS)
        raise ValueError(f"--only {only}: no experiment has this name; choose one of {names}")
    return found
