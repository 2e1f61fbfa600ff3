"""Thousands of hosts in one process: effects of coordination on loss, utilisation and fairness."""

from xco.simulate.engine import run
from xco.simulate.results import Result
from xco.simulate.scenario import Scenario

__all__ = ["Result", "Scenario", "run"]
