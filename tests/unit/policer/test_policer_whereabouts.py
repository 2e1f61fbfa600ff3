"""Where routers are that contracts follow: moves, copies, liars, silence, restarts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policer_plant import report_of

from policer.contracts.location import (
    OFTEN,
    RETURN_S,
    SILENT_S,
    WITHIN_S,
    Move,
    Whereabouts,
    present,
)
from policer.service.service import ServiceSettings
from xtc.wire import Finding, Report

GOLD, SILVER = "4f1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a11", "5a1c0b8e-3a52-4d0c-9d53-0b3c0f7e2a12"


class Scene:
    """A fleet of which a test says what is where, and the time."""

    def __init__(self, *followed: str, homes: dict[str, str] | None = None) -> None:
        self.now = 1000.0
        self.whereabouts = Whereabouts(self.now)
        self.whereabouts.follow(followed, homes or {})

    def hear(self, host: str, *reports: str | Report, seconds: float = 1.0) -> list[Move]:
        """Let so many seconds pass, and a host say which routers it has."""
        self.now += seconds
        found = [report_of(one) if isinstance(one, str) else one for one in reports]
        return self.whereabouts.heard(host, {one.vr: one for one in found}, self.now)

    def home(self, router: str = "r") -> str | None:
        return self.whereabouts.homes.get(router)

    def at(self, host: str) -> dict[str, str]:
        return dict(self.whereabouts.at(host))

    def claims(self, age: float = 0.0) -> list[tuple[str, str]]:
        return sorted(self.whereabouts.claims(self.now - age))


def domain(vr: str, uuid: str = GOLD, **changed: Any) -> Report:
    return report_of(vr, uuid=uuid, **changed)


def test_a_router_is_found_where_it_is_first_seen() -> None:
    scene = Scene("r")
    assert scene.home() is None
    assert scene.hear("h0", "r", "other") == [Move("r", "h0", "r", None, None)]
    assert scene.at("h0") == {"r": "r"}
    assert scene.hear("h0", "r", "other") == []


def test_a_router_that_vanished_on_one_host_moves_to_the_one_that_has_it() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("h0")
    assert scene.home() == "h0"
    assert scene.hear("h1", "r") == [Move("r", "h1", "r", "h0", "r")]
    assert (scene.at("h0"), scene.at("h1")) == ({}, {"r": "r"})


def test_while_a_router_migrates_it_stays_where_it_is_until_it_is_gone_there() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    for _ in range(20):
        assert scene.hear("h1", "r") == []
        assert scene.hear("h0", "r") == []
    assert scene.claims() == [("r", "h1")]
    scene.hear("h0")
    assert scene.hear("h1", "r") == [Move("r", "h1", "r", "h0", "r")]
    assert scene.claims() == []


@pytest.mark.parametrize(
    "report",
    [report_of("r", finding=Finding.GONE), report_of("r", interfaces=())],
    ids=["gone", "no interfaces"],
)
def test_a_router_that_is_configured_and_does_not_run_is_not_there(report: Report) -> None:
    scene = Scene("r")
    assert scene.hear("h0", report) == []
    scene.hear("h1", "r")
    assert scene.home() == "h1"
    scene.hear("h1", report)
    assert scene.hear("h0", "r") == [Move("r", "h0", "r", "h1", "r")]


def test_a_copy_that_is_left_behind_takes_nothing() -> None:
    """It shows again on the host that it left, long after it did."""
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("h0")
    scene.hear("h1", "r")
    for _ in range(int(RETURN_S / 2)):
        scene.hear("h0")
        scene.hear("h1", "r")
    assert scene.hear("h0", "r") == []
    assert scene.home() == "h1"
    assert scene.claims() == [("r", "h0")]


def test_a_liar_gets_nothing_while_the_home_is_heard() -> None:
    scene = Scene("r", "s")
    scene.hear("h0", "r", "s")
    for _ in range(200):
        assert scene.hear("liar", "r", "s") == []
        assert scene.hear("h0", "r", "s") == []
    assert (scene.home("r"), scene.home("s")) == ("h0", "h0")


def test_a_liar_gives_back_what_it_took_while_a_router_was_started_again() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("liar", "r")
    scene.hear("h0")
    assert scene.hear("liar", "r") == [Move("r", "liar", "r", "h0", "r")]
    assert scene.hear("h0", "r") == [Move("r", "h0", "r", "liar", "r")]
    for _ in range(100):  # and does not get it back in turn
        assert scene.hear("liar", "r") == []
        assert scene.hear("h0", "r") == []


def test_a_home_that_is_silent_for_a_moment_keeps_its_routers() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    assert scene.hear("h1", "r", seconds=SILENT_S - 0.1) == []
    assert scene.hear("h1", "r", seconds=0.1) == [Move("r", "h1", "r", "h0", "r")]


def test_a_home_that_was_silent_gets_back_what_it_still_has() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("liar", "r", seconds=SILENT_S)
    assert scene.home() == "liar"
    scene.hear("liar", "r", seconds=10 * RETURN_S)
    assert scene.hear("h0", "r") == [Move("r", "h0", "r", "liar", "r")]
    assert scene.hear("liar", "r") == []


def test_a_home_that_was_silent_and_has_it_no_more_has_no_right_to_it() -> None:
    """Another machine has taken over its routers; an old copy that starts later is a copy."""
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("h1", "r", seconds=SILENT_S)
    scene.hear("h0")
    scene.hear("h1", "r")
    assert scene.hear("h0", "r") == []
    assert scene.home() == "h1"


def test_a_silence_ends_with_a_right_that_ends_too() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("h1", "r", seconds=SILENT_S)
    for _ in range(OFTEN - 1):  # so that it may not move for a while
        scene.whereabouts._moved["r"] = (*scene.whereabouts._moved["r"], scene.now)
    assert scene.hear("h0", "r") == []
    scene.hear("h1", "r", seconds=WITHIN_S)
    assert scene.hear("h0", "r") == [Move("r", "h0", "r", "h1", "r")]


def test_after_a_silence_a_right_that_was_not_used_ends() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("h1", "r", seconds=SILENT_S)
    for _ in range(OFTEN - 1):
        scene.whereabouts._moved["r"] = (*scene.whereabouts._moved["r"], scene.now)
    assert scene.hear("h0", "r") == []
    scene.hear("h1", "r", seconds=RETURN_S)
    assert scene.hear("h0", "r") == []


def test_what_operators_change_takes_away_no_right_to_a_router() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("h0")
    scene.hear("liar", "r")
    scene.whereabouts.follow({"r", "new"}, {"new": "h0"})
    scene.whereabouts.forget("h9")
    assert scene.hear("h0", "r") == [Move("r", "h0", "r", "liar", "r")]


def test_the_silence_is_that_of_two_leases() -> None:
    assert 2 * ServiceSettings("me").ttl_s == SILENT_S


def test_only_who_had_it_before_gets_it_back() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("h0")
    scene.hear("h1", "r")
    assert scene.hear("h2", "r") == []
    scene.hear("h1")
    scene.hear("h2", "r")
    assert scene.hear("h0", "r") == []
    assert scene.hear("h1", "r") == [Move("r", "h1", "r", "h2", "r")]


def test_the_silence_of_a_host_says_nothing_of_what_left_another() -> None:
    """It was taken from h0, which was silent, and left h1 in the open: h1 alone may have it."""
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("h1", "r", seconds=SILENT_S)
    scene.hear("h1")
    scene.hear("h2", "r")
    scene.hear("h0")
    assert scene.hear("h1", "r") == [Move("r", "h1", "r", "h2", "r")]


def test_a_router_that_flaps_between_hosts_stays_for_a_while() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    moves = 0
    for turn in range(600):
        here, there = ("h0", "h1") if turn % 2 else ("h1", "h0")
        moves += len(scene.hear(there, seconds=0.5))
        moves += len(scene.hear(here, "r", seconds=0.5))
    assert OFTEN <= moves <= 600 / WITHIN_S * OFTEN + OFTEN
    scene.now += WITHIN_S
    scene.hear("h1")
    scene.hear("h0")
    scene.hear("h2", "r")
    assert scene.home() == "h2"  # once it has settled


def test_two_minutes_after_the_first_of_four_moves_a_router_may_move_again() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    moves = []
    for seconds, before, after in (
        (0.0, "h0", "h1"),
        (30.0, "h1", "h0"),
        (30.0, "h0", "h1"),
        (30.0, "h1", "h0"),
        (29.5, "h0", "h1"),
        (0.5, "h0", "h1"),
    ):
        scene.hear(before, seconds=seconds)
        moves.append(len(scene.hear(after, "r", seconds=0.0)))
    assert moves == [1, 1, 1, 1, 0, 1]
    assert (OFTEN, WITHIN_S) == (4, 120.0)


@pytest.mark.parametrize(("seconds", "returns"), [(RETURN_S - 0.5, 1), (RETURN_S, 0)])
def test_a_right_to_a_router_ends_at_its_end(seconds: float, returns: int) -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("h0")
    scene.hear("h1", "r", seconds=0.0)
    scene.now += seconds
    scene.hear("h1", "r", seconds=0.0)
    assert len(scene.hear("h0", "r", seconds=0.0)) == returns
    scene.hear("h0")
    assert len(scene.hear("h1", "r", seconds=0.0)) == returns
    assert len(scene.hear("h0", "r", seconds=0.0)) == returns  # a right that was used is over


def test_a_host_and_a_liar_that_flap_together_move_a_router_rarely() -> None:
    """The home comes and goes, and the liar never lets go of it."""
    scene = Scene("r")
    moves = 0
    for turn in range(600):
        moves += len(scene.hear("h0", *(["r"] if turn % 2 else []), seconds=0.5))
        moves += len(scene.hear("liar", "r", seconds=0.5))
    assert moves <= 600 / WITHIN_S * OFTEN + OFTEN


def test_after_a_start_routers_are_where_the_store_has_them() -> None:
    scene = Scene("r", homes={"r": "h0", "unknown": "h0"})
    assert scene.at("h0") == {"r": "r"}
    assert scene.hear("h1", "r") == []  # h0 may just not have reported yet
    assert scene.hear("h0", "r") == [Move("r", "h0", "r", "h0", None)]
    assert scene.home() == "h0"
    assert scene.hear("h0", "r") == []


def test_after_a_start_a_home_that_is_not_heard_is_given_up_like_any_other() -> None:
    scene = Scene("r", homes={"r": "h0"})
    assert scene.hear("h1", "r", seconds=SILENT_S - 0.1) == []
    assert scene.hear("h1", "r", seconds=0.1) == [Move("r", "h1", "r", "h0", None)]


def test_after_a_start_a_router_that_moved_meanwhile_moves_at_once() -> None:
    scene = Scene("r", homes={"r": "h0"})
    scene.hear("h0", "other")
    assert scene.hear("h1", "r") == [Move("r", "h1", "r", "h0", None)]


def test_a_router_is_known_by_its_uuid_whatever_it_is_called() -> None:
    scene = Scene(GOLD)
    assert scene.hear("h0", domain("gold", GOLD.upper())) == [Move(GOLD, "h0", "gold", None, None)]
    scene.hear("h0", report_of("gold"))  # it does not run: its UUID is not told
    assert scene.hear("h1", domain("customer-7")) == [Move(GOLD, "h1", "customer-7", "h0", "gold")]
    assert scene.at("h1") == {GOLD: "customer-7"}


def test_after_a_start_a_uuid_gets_its_name_with_the_first_word() -> None:
    """Else its contract would stay with a router that is called like the UUID."""
    scene = Scene(GOLD, homes={GOLD: "h0"})
    assert scene.hear("h0", domain("gold")) == [Move(GOLD, "h0", "gold", "h0", None)]
    assert scene.at("h0") == {GOLD: "gold"}
    assert scene.hear("h0", domain("gold")) == []


def test_a_router_that_gets_another_name_on_its_host_keeps_its_contract() -> None:
    scene = Scene(GOLD)
    scene.hear("h0", domain("gold"))
    (move,) = scene.hear("h0", domain("shiny"))
    assert (move, move.came) == (Move(GOLD, "h0", "shiny", "h0", "gold"), False)
    assert scene.at("h0") == {GOLD: "shiny"}


def test_of_two_contracts_of_one_router_that_of_its_uuid_holds() -> None:
    scene = Scene(GOLD, "gold")
    scene.hear("h0", domain("gold"))
    assert scene.at("h0") == {GOLD: "gold"}
    assert scene.home("gold") is None
    assert scene.hear("h1", report_of("gold")) == [Move("gold", "h1", "gold", None, None)]


def test_a_contract_by_uuid_that_comes_later_comes_last_and_so_holds() -> None:
    scene = Scene("gold")
    scene.hear("h0", domain("gold"))
    scene.whereabouts.follow({GOLD, "gold"}, {})
    scene.hear("h0", domain("gold"))
    assert list(scene.whereabouts.at("h0")) == [("gold", "gold"), (GOLD, "gold")]
    scene.whereabouts.follow({"gold"}, {})
    scene.hear("h0", domain("gold"))
    assert scene.at("h0") == {"gold": "gold"}


def test_a_host_that_was_removed_has_nothing_any_more() -> None:
    scene = Scene("r", "s")
    scene.hear("h0", "r")
    scene.hear("h1", "r", "s")
    scene.whereabouts.forget("h0")
    assert (scene.home("r"), scene.home("s")) == (None, "h1")
    assert scene.claims() == []  # nobody else has it
    assert scene.hear("h1", "r", "s") == [Move("r", "h1", "r", None, None)]
    scene.whereabouts.forget("h1")
    assert scene.claims() == []
    assert scene.at("h1") == {}


def test_a_removed_host_that_a_router_left_is_no_place_to_go_back_to() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    scene.hear("h0")
    scene.hear("h1", "r")
    scene.whereabouts.forget("h0")
    assert scene.whereabouts.now_at("h0", "r") is None
    assert scene.hear("h0", "r") == []


def test_nothing_is_remembered_of_what_is_followed_no_more() -> None:
    scene = Scene("r", "s")
    scene.hear("h0", "r", "s")
    scene.hear("h1", "s", seconds=SILENT_S)
    scene.hear("h0")
    scene.hear("h1", "r", "s")
    scene.hear("h2", "r")
    scene.whereabouts.follow((), {})
    assert scene.home() is None
    assert scene.claims() == []
    assert scene.whereabouts.now_at("h0", "r") is None
    assert all(not known for known in state_of(scene.whereabouts))
    for host in ("h0", "h1", "h2"):
        scene.whereabouts.forget(host)
    assert scene.whereabouts._here == scene.whereabouts._heard == {}
    assert scene.hear("h0", "r") == []
    scene.whereabouts.follow({"r"}, {})
    scene.hear("h2", "r")
    assert scene.home() == "h2"


def state_of(whereabouts: Whereabouts) -> list[Any]:
    """Return what is kept of each router; of hosts, what they have of those followed."""
    by_router = ("_homes", "_names", "_left", "_moved")
    found = [getattr(whereabouts, name) for name in by_router]
    by_host = ("_claims", "_here", "_silent")
    return [*found, *(one for name in by_host for one in getattr(whereabouts, name).values())]


def test_what_a_leader_before_wrote_is_believed_of_what_is_not_seen() -> None:
    """A policer that did not hear h1 takes over from one that did."""
    scene = Scene("r", "s", "t")
    scene.hear("h0", "r", "s", "t")
    scene.hear("h0", "s")
    scene.whereabouts.correct({"r": "h1", "s": "h1", "unknown": "h1"})
    assert (scene.home("r"), scene.home("s"), scene.home("t")) == ("h1", "h0", "h0")
    assert scene.at("h1") == {"r": "r"}


def test_what_it_is_called_there_is_not_known_then() -> None:
    scene = Scene(GOLD)
    scene.hear("h0", domain("gold"))
    scene.hear("h0")
    scene.whereabouts.correct({GOLD: "h1"})
    assert scene.at("h1") == {GOLD: GOLD}
    assert scene.hear("h1", domain("gold")) == [Move(GOLD, "h1", "gold", "h1", None)]


def test_where_a_router_is_that_left_a_host_is_known_for_who_asks_there() -> None:
    scene = Scene(GOLD)
    scene.hear("h0", domain("gold"))
    scene.hear("h0")
    assert scene.whereabouts.now_at("h0", "gold") is None
    scene.hear("h1", domain("shiny"))
    assert scene.whereabouts.now_at("h0", "gold") == ("h1", "shiny")
    assert scene.whereabouts.name_on("h0", GOLD) == "gold"
    assert scene.whereabouts.name_on("h1", GOLD) == "shiny"
    scene.hear("h1")
    assert scene.whereabouts.name_on("h1", GOLD) == "shiny"
    scene.hear("h2", domain("third"), domain("other", uuid=""))
    assert scene.whereabouts.name_on("h2", GOLD) == "third"
    assert Whereabouts(0.0).name_on("h0", GOLD) is None


def test_claims_have_an_age() -> None:
    scene = Scene("r")
    scene.hear("h0", "r")
    for _ in range(10):
        scene.hear("h1", "r")
        scene.hear("h0", "r")
    assert scene.claims(age=18.0) == [("r", "h1")]
    assert scene.claims(age=20.0) == []
    scene.hear("h1")
    scene.hear("h1", "r")
    assert scene.claims(age=1.0) == []


def test_who_follows_nothing_reads_no_reports() -> None:
    assert list(present((), {"r": report_of("r")})) == []
    assert list(present({"r"}, {"r": report_of("r"), "s": report_of("s")})) == [("r", "r")]


steps = st.lists(
    st.tuples(
        st.sampled_from(("h0", "h1", "h2")),
        st.lists(st.sampled_from(("r", "s", "t")), unique=True),
        st.sampled_from((0.5, 1.0, 10.0, 40.0, 700.0)),
    ),
    max_size=40,
)


@given(steps)
def test_whatever_hosts_say_each_router_is_at_one_place_and_the_books_agree(
    told: list[tuple[str, list[str], float]],
) -> None:
    scene = Scene("r", "s", homes={"r": "h1"})
    for host, routers, seconds in told:
        before = dict(scene.whereabouts.homes)
        moves = scene.hear(host, *routers, seconds=seconds)
        after = dict(scene.whereabouts.homes)
        assert {move.router for move in moves if move.came} == {
            router for router in after if before.get(router) != after[router]
        }
        assert all(move.host == host and move.vr in routers for move in moves)
        assert all(move.from_host == before.get(move.router) for move in moves)
        seen = [(router, at) for at in ("h0", "h1", "h2") for router in scene.at(at)]
        assert sorted(seen) == sorted(after.items())
        assert all(after[router] != claimer for router, claimer in scene.claims())
