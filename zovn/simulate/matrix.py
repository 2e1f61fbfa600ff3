"""The cells of the paper's figure 12: modes, TCP versions, and background, run side by side."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

from zovn.simulate.engine import run
from zovn.simulate.results import Result
from zovn.simulate.scenario import ALGORITHMS, LOADS, MODES, Algorithm, Load, Mode, Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination."""

    tcp: Algorithm
    background: Load
    own_class: bool
    mode: Mode

    def scenario(self, base: Scenario) -> Scenario:
        """Return a scenario with this combination."""
        background = replace(base.background, load=LOADS[self.background], own_class=self.own_class)
        tcp = replace(base.tcp, algorithm=self.tcp)
        return replace(base, mode=self.mode, tcp=tcp, background=background)


def cells(
    modes: Iterable[Mode],
    algorithms: Iterable[Algorithm],
    backgrounds: Iterable[Load],
    own_class: Iterable[bool],
) -> list[Cell]:
    """Return all combinations; without background there are no classes to separate."""
    modes, algorithms, own_class = list(modes), list(algorithms), list(own_class)
    return [
        Cell(tcp=tcp, background=background, own_class=own, mode=mode)
        for background in backgrounds
        for own in (own_class if background != "none" else [False])
        for tcp in algorithms
        for mode in modes
    ]


def figure_12() -> list[Cell]:
    """Return the cells of the figure, and those with a class for the background."""
    return cells(MODES, ALGORITHMS, LOADS, [False, True])


WHOLE: Final = 100
"""What each cell adds to the progress."""


def run_all(
    base: Scenario,
    wanted: Sequence[Cell],
    jobs: int,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Result]:
    """Run cells on so many processors; `progress` gets the sum of their percentages.

    Raises:
        ConfigError, EngineError: as `zovn.simulate.engine.run`.
    """
    scenarios = [cell.scenario(base) for cell in wanted]
    for scenario in scenarios:
        scenario.check()
    done, lock = [0] * len(scenarios), Lock()

    def one(index: int) -> Result:
        def advance(percent: int) -> None:
            with lock:
                done[index] = percent
                progress(sum(done))

        result = run(scenarios[index], advance)
        advance(WHOLE)
        return result

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(pool.map(one, range(len(scenarios))))
