"""Two policers on one database, the leader killed in turns: no order is obeyed twice."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.policer.alternate import prove

if TYPE_CHECKING:
    from store_rig import Backend

pytest_plugins = ["store_rig"]
pytestmark = pytest.mark.timeout(600)

KILLS, HOSTS, ROUTERS = 3, 3, 4


def test_leaders_that_are_killed_in_turns_have_no_order_obeyed_twice(
    backend: "Backend", tmp_path: Path
) -> None:
    """Real processes and SIGKILL; hosts that keep every order, and obey by the daemon's rules."""
    proof = prove("a database", backend.url, tmp_path / "policers", KILLS, HOSTS, ROUTERS)
    assert (proof.twice, proof.not_rising, proof.lower_epoch) == ([], [], [])
    assert proof.lapsed == 0
    assert proof.epochs == sorted(set(proof.epochs))
    assert len(proof.epochs) == KILLS + 1
    assert [kill.killed for kill in proof.kills] in (["one", "two", "one"], ["two", "one", "two"])
    assert proof.orders > len(proof.epochs) * HOSTS * ROUTERS
    assert proof.holds
