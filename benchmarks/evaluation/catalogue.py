"""All experiments of the evaluation, in the order of the report."""

from typing import Final

from benchmarks.evaluation.plan import Experiment
from benchmarks.evaluation.programs import gcc, xco, zovn
from benchmarks.evaluation.simpler import simpler
from benchmarks.evaluation.xtc import actuators, beside, cap_map, fairness, hold, hops, six, xen

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    cap_map.EXPERIMENT,
    hold.EXPERIMENT,
    actuators.EXPERIMENT,
    six.EXPERIMENT,
    beside.EXPERIMENT,
    fairness.EXPERIMENT,
    hops.EXPERIMENT,
    xen.EXPERIMENT,
    simpler.EXPERIMENT,
    *xco.EXPERIMENTS,
    *gcc.EXPERIMENTS,
    *zovn.EXPERIMENTS,
)
OWN: Final = tuple(one for one in EXPERIMENTS if not one.made_by)
"""Those with runs that `make evaluation` makes."""
PAPERS: Final = tuple(dict.fromkeys(one.paper for one in EXPERIMENTS))


def chosen(only: str | None) -> tuple[Experiment, ...]:
    """Return the experiments to run with names that begin so; all without a name.

    Raises:
        ValueError: no experiment to run has that name.
    """
    found = tuple(one for one in OWN if only is None or one.name.startswith(only))
    if not found:
        names = ", ".join(one.name for one in OWN)
        others = "".join(f"; {one.made_by} runs {one.name}" for one in EXPERIMENTS if one.made_by)
        raise ValueError(f"--only {only}: choose one of {names}{others}")
    return found
