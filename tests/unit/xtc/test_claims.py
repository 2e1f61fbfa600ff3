"""Interfaces that several routers claim are found before they blind both."""

import pytest

from xtc.measure.claims import added, claim_mistakes, contested
from xtc.measure.collector import Binding

VIFS = Binding(("vif7.*",))


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (Binding(("vif7.0",)), "vif7.0"),
        (Binding(("vif7.*",)), "vif7.*"),
        (Binding(("vif*",)), "vif7.*"),
        (Binding(domid=7), "vif7.0"),
    ],
)
def test_names_and_globs_conflict_without_any_interface(other: Binding, name: str) -> None:
    assert contested({"a": VIFS, "b": other}, ())[name] == ("a", "b")


def test_globs_that_overlap_conflict_where_an_interface_falls_under_both() -> None:
    bindings = {"a": Binding(("tap-*-0",)), "b": Binding(("tap-x-*",))}
    assert contested(bindings, ("tap-x-1", "tap-y-0")) == {}
    assert contested(bindings, ("tap-x-0",)) == {"tap-x-0": ("a", "b")}


def test_a_router_does_not_conflict_with_itself() -> None:
    assert contested({"a": Binding(("vif7.*", "vif7.0"), domid=7)}, ("vif7.0",)) == {}


def test_what_conflicted_before_is_not_new() -> None:
    before = {"x": ("a", "b"), "y": ("a", "b", "c")}
    after = {"x": ("a", "b"), "y": ("a", "c"), "z": ("a", "b")}
    assert added(before, after) == {"z": ("a", "b")}


def test_a_mistake_names_both_routers_and_the_interfaces() -> None:
    bindings = {"a": Binding(("v*",)), "b": Binding(("v*",))}
    found = contested(bindings, ("v1", "v2", "v3"))
    (mistake,) = claim_mistakes(found, bindings)
    assert mistake.where == "router.b.interfaces"
    assert mistake.problem == "router.a claims v*, v1, v2 and 1 more too"


def test_a_domain_s_number_is_named_as_such() -> None:
    bindings = {"a": Binding(domid=7), "b": Binding(domid=7)}
    (mistake,) = claim_mistakes(contested(bindings, ()), bindings)
    assert mistake.where == "router.b.domid"
