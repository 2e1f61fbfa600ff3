"""Replays the recorded history of the affected hosts against a plan's contracts."""

from collections.abc import Mapping

from policer.contracts.admission import counts
from policer.contracts.in_force import Book
from policer.contracts.location import present
from policer.contracts.promised import ANYWHERE
from policer.contracts.replay import Fleet, Replayed
from policer.fleetfile.document import Entered
from policer.fleetfile.plan import Draft
from policer.history.window import window
from policer.reports.replay import replayed
from policer.rest.access.context import Context
from policer.store.inventory.plans import Replaying


def replaying_of(context: Context, length_s: int) -> Replaying:
    """Return a function that replays recent traffic against plans.

    Args:
        context: source of the history.
        length_s: seconds before now.

    Raises:
        Invalid: history is not kept for so long.
    """
    wanted = window(length_s, context.settings.wall(), context.settings.retention())
    now = context.today()

    def replaying(made: Draft) -> Replayed:
        goal = made.goal.entered
        fleet = _fleet(goal, Book(goal.classes, now), _follows(context, goal))
        return replayed(context.store.history, made.hosts, wanted, fleet, now)

    return replaying


def _fleet(goal: Entered, book: Book, follows: Mapping[tuple[str, str], str]) -> Fleet:
    """Return the contracts to replay; those that contradict themselves are left out."""
    sound = {key: one for key, one in goal.contracts.items() if counts(one, book)}
    return Fleet(goal.hosts, goal.classes, sound, follows)


def _follows(context: Context, goal: Entered) -> dict[tuple[str, str], str]:
    """Return the routers that contracts follow under another name, such as their UUID."""
    followed = {vr for host, vr in goal.contracts if host == ANYWHERE}
    return {
        (name, vr): router
        for name, live in context.fleet.hosts.items()
        for router, vr in present(followed, live.telemetry.routers)
        if router != vr
    }
