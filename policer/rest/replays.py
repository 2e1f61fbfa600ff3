"""Holds a plan's contracts against what the fleet's history says of the hosts concerned."""

from collections.abc import Mapping

from policer.admission import counts
from policer.fleetfile.document import Entered
from policer.fleetfile.plan import Draft
from policer.history.replaying import replayed
from policer.history.window import window
from policer.inforce import Book
from policer.promises import ANYWHERE
from policer.replay import Fleet, Replayed
from policer.rest.desk import Desk
from policer.store.plans import Replaying
from policer.whereabouts import present


def replaying_of(desk: Desk, length_s: int) -> Replaying:
    """Return what holds plans against the traffic of the time until now.

    Args:
        desk: has the history.
        length_s: how far back, seconds.

    Raises:
        Invalid: history of so long ago is not kept.
    """
    wanted = window(length_s, desk.settings.wall(), desk.settings.retention())
    now = desk.today()

    def replaying(made: Draft) -> Replayed:
        goal = made.goal.entered
        fleet = _fleet(goal, Book(goal.classes, now), _follows(desk, goal))
        return replayed(desk.store.history, made.hosts, wanted, fleet, now)

    return replaying


def _fleet(goal: Entered, book: Book, follows: Mapping[tuple[str, str], str]) -> Fleet:
    """Return what is held against traffic; contracts that contradict themselves are left out."""
    sound = {key: one for key, one in goal.contracts.items() if counts(one, book)}
    return Fleet(goal.hosts, goal.classes, sound, follows)


def _follows(desk: Desk, goal: Entered) -> dict[tuple[str, str], str]:
    """Return which routers are followed by another name than theirs, such as their UUID."""
    followed = {vr for host, vr in goal.contracts if host == ANYWHERE}
    return {
        (name, vr): router
        for name, live in desk.fleet.hosts.items()
        for router, vr in present(followed, live.sight.routers)
        if router != vr
    }
