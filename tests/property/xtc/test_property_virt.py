"""Every cap within the limits is taken by its hypervisor, and comes back as itself."""

from fake_guest import Driver, Guest, accepted
from hypothesis import given
from hypothesis import strategies as st
from support.damage import damaged

from common.units import CapFraction
from xtc.errors import Transient
from xtc.libvirt.domain_xml import parse_domain
from xtc.libvirt.drivers import Way, way_of
from xtc.libvirt.metadata import mark_of, original_of

HOST_CPUS = 64
WAYS = [("Xen", "vcpu"), ("QEMU", "vcpu"), ("QEMU", "machine"), ("LXC", "vcpu")]

kinds = st.sampled_from(WAYS)
vcpu_counts = st.integers(min_value=1, max_value=64)
shares = st.floats(min_value=0.0, max_value=1.0)
numbers = st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1)
keys = st.sampled_from(["cap", "vcpu_period", "vcpu_quota", "global_period", "global_quota"])


def guest_of(driver: str, vcpus: int) -> Guest:
    kind: Driver = "Xen" if driver == "Xen" else "QEMU" if driver == "QEMU" else "LXC"
    guest = Guest("vr", "uuid", kind, vcpus)
    guest.begin(1, [])
    return guest


def within(way: Way, vcpus: int, share: float) -> CapFraction:
    limits = way.limits(vcpus, HOST_CPUS)
    cap = limits.floor * (limits.ceiling / limits.floor) ** share
    return limits.bound(CapFraction(cap), target="vr")


def quantum(kind: tuple[str, str], vcpus: int, parameters: dict[str, int]) -> float:
    if kind[0] == "Xen":
        return 0.01
    period = next(value for key, value in parameters.items() if key.endswith("period"))
    return (vcpus if kind == ("QEMU", "vcpu") else 1) / period


@given(kinds, vcpu_counts, shares)
def test_a_cap_is_taken_and_reads_back_within_a_quantum(
    kind: tuple[str, str], vcpus: int, share: float
) -> None:
    way, guest = way_of("vr", *kind), guest_of(kind[0], vcpus)
    cap = within(way, vcpus, share)
    parameters = way.parameters(cap, vcpus, guest.parameters)
    assert accepted(guest, parameters) == parameters
    back = way.cap(parameters, vcpus)
    assert back is not None
    assert abs(back - cap) <= quantum(kind, vcpus, parameters)


@given(kinds, vcpu_counts, shares)
def test_a_cap_is_never_zero_and_never_uncapped(
    kind: tuple[str, str], vcpus: int, share: float
) -> None:
    way, guest = way_of("vr", *kind), guest_of(kind[0], vcpus)
    for value in way.parameters(within(way, vcpus, share), vcpus, guest.parameters).values():
        assert value > 0


@given(vcpu_counts, shares)
def test_xen_gets_whole_percents_within_its_bounds(vcpus: int, share: float) -> None:
    way = way_of("vr", "Xen", "vcpu")
    percent = way.parameters(within(way, vcpus, share), vcpus, {})["cap"]
    assert 1 <= percent <= 100 * vcpus


@given(kinds, vcpu_counts, shares, shares)
def test_the_next_cap_keeps_or_changes_the_period_but_says_itself(
    kind: tuple[str, str], vcpus: int, one: float, other: float
) -> None:
    way, guest = way_of("vr", *kind), guest_of(kind[0], vcpus)
    guest.parameters |= way.parameters(within(way, vcpus, one), vcpus, guest.parameters)
    cap = within(way, vcpus, other)
    parameters = way.parameters(cap, vcpus, guest.parameters)
    guest.parameters |= accepted(guest, parameters)
    back = way.cap(guest.parameters, vcpus)
    assert back is not None
    assert abs(back - cap) <= quantum(kind, vcpus, parameters)


@given(kinds, vcpu_counts, shares)
def test_an_original_with_a_cap_is_put_back_as_it_was(
    kind: tuple[str, str], vcpus: int, share: float
) -> None:
    way, guest = way_of("vr", *kind), guest_of(kind[0], vcpus)
    guest.parameters |= way.parameters(within(way, vcpus, share), vcpus, guest.parameters)
    before = dict(guest.parameters)
    original = way.original(before)
    guest.parameters |= way.parameters(within(way, vcpus, 0.5), vcpus, before)
    guest.parameters |= accepted(guest, original)
    assert guest.parameters == before


@given(st.dictionaries(keys, numbers, min_size=1))
def test_a_mark_says_what_was_put_into_it(original: dict[str, int]) -> None:
    assert original_of(mark_of(original)) == original


@given(st.text())
def test_anything_else_is_no_mark(text: str) -> None:
    assert original_of(text) is None


names = st.from_regex(r"[a-z0-9.]{1,18}", fullmatch=True)
interfaces = st.tuples(st.sampled_from(["bridge", "direct", "hostdev", "user"]), names)


def domain(vcpus: int, ends: list[tuple[str, str]]) -> str:
    devices = "".join(f"<interface type='{k}'><target dev='{n}'/></interface>" for k, n in ends)
    return f"<domain><vcpu>{vcpus}</vcpu><devices>{devices}</devices></domain>"


@given(
    damaged(st.builds(domain, vcpu_counts, st.lists(interfaces, max_size=3))),
    st.sampled_from(["Xen", "QEMU", "LXC"]),
)
def test_whatever_a_description_says_it_is_read_or_refused(text: str, driver: str) -> None:
    try:
        found = parse_domain(text, name="vr", driver=driver)
    except Transient:
        return
    assert found.vcpus >= 1
    assert len(set(found.interfaces)) == len(found.interfaces)
    assert all(1 <= len(name) <= 15 and "/" not in name for name in found.interfaces)


@given(vcpu_counts, st.lists(interfaces, max_size=3, unique_by=lambda end: end[1]))
def test_an_interface_is_counted_if_the_host_has_its_end(
    vcpus: int, ends: list[tuple[str, str]]
) -> None:
    found = parse_domain(domain(vcpus, ends), name="vr", driver="QEMU")
    counted = [n for k, n in ends if k in {"bridge", "direct"} and len(n) <= 15]
    assert (found.vcpus, list(found.interfaces)) == (vcpus, counted)
    assert len(found.uncounted) == len(ends) - len(counted)
