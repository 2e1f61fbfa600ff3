"""Discovery over fake hypervisors: what xtc would control, in what words, and why not the rest."""

import tomllib
from collections.abc import Iterator

import msgspec
import pytest
from fake_guest import FakeLibvirtError
from fake_libvirt import FakeHost
from hypothesis import example, given
from hypothesis import strategies as st
from virt_rig import idle_threads, until

from common.clock import FakeClock, MonotonicClock
from common.units import Seconds
from xtc.config.plan import plans
from xtc.config.schema import Config
from xtc.errors import Unsupported
from xtc.libvirt import discover
from xtc.libvirt.api import Api
from xtc.libvirt.discover import Candidate, candidate, look
from xtc.libvirt.domains import DomainView, HostView
from xtc.libvirt.mailbox import Mailbox
from xtc.libvirt.metadata import URI, mark_of
from xtc.spec import LibvirtSpec

SYSTEM = "qemu:///system"
UUID = "74ca26f9-74de-57da-9734-e2a7b577e466"


@pytest.fixture
def host() -> Iterator[FakeHost]:
    host = FakeHost("QEMU")
    host.add("gold", vcpus=2, nics=2)
    yield host
    host.thaw()
    until(Mailbox(FakeClock()), lambda: idle_threads() == 0)


def found(host: FakeHost, name: str = "gold") -> Candidate:
    seen = look(host.load, SYSTEM, MonotonicClock())
    assert seen.problem == ""
    [domain] = [domain for domain in seen.domains if domain.domain == name]
    return domain


def configured(domain: Candidate) -> Config:
    return msgspec.convert(tomllib.loads(domain.configuration), Config)


def test_a_running_domain_is_controllable_as_it_is_printed(host: FakeHost) -> None:
    gold = found(host)
    assert (gold.controllable, gold.running, gold.vcpus) == (True, True, 2)
    assert (gold.driver, gold.interfaces, gold.cap) == ("QEMU", ("vnet1", "vnet2"), None)
    assert (gold.marked, gold.reasons) == (False, ())
    assert plans(configured(gold))["gold"].spec == LibvirtSpec("gold", SYSTEM)


def test_a_cap_and_a_mark_are_shown(host: FakeHost) -> None:
    host.guests["gold"].parameters |= {"vcpu_quota": 25_000}
    host.guests["gold"].metadata[URI] = mark_of({"vcpu_quota": -1})
    gold = found(host)
    assert (gold.cap, gold.marked) == (0.5, True)


def test_looking_changes_nothing(host: FakeHost) -> None:
    found(host)
    assert host.made("setMetadata") == host.made("setSchedulerParametersFlags") == 0


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("stopped", "does not run"),
        ("denied", "polkit"),
        ("no_nic", "no interface"),
        ("passed_through", "hostdev"),
    ],
)
def test_why_not(host: FakeHost, trouble: str, words: str) -> None:
    match trouble:
        case "stopped":
            host.destroy("gold")
        case "denied":
            host.fail("gold", "info", error=FakeLibvirtError(88, "access denied"))
        case "no_nic":
            host.guests["gold"].targets = []
        case "passed_through":
            nic = "<devices><interface type='hostdev'/></devices>"
            host.guests["gold"].xml = f"<domain><vcpu>1</vcpu>{nic}</domain>"
    gold = found(host)
    assert not gold.controllable
    assert gold.configuration == ""
    assert words in " ".join(gold.reasons)


def test_a_hypervisor_that_cannot_be_asked_says_why(host: FakeHost) -> None:
    host.crash()
    seen = look(host.load, None, MonotonicClock())
    assert "No such file" in seen.problem
    assert seen.domains == ()


def test_one_that_hangs_is_left_in_time(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "PATIENCE_S", Seconds(0.05))
    host.freeze()
    assert "did not answer" in look(host.load, None, MonotonicClock()).problem


def test_without_libvirt_python_it_says_how_to_get_it() -> None:
    def load() -> Api:
        raise Unsupported("libvirt", "libvirt-python cannot be used", "install it")

    assert "install it" in look(load, None, MonotonicClock()).problem


@given(st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=255))
@example("a]b")
@example('"quoted"')
@example("back\\slash")
@example("ä ö.ü")
def test_what_is_printed_configures_that_domain_whatever_its_name(name: str) -> None:
    view = DomainView(UUID, name, 1, visited=True, described=True, interfaces=("vnet1",))
    printed = candidate(HostView("QEMU", connected=True, surveyed=True), view, SYSTEM)
    [plan] = plans(configured(printed)).values()
    assert plan.spec == LibvirtSpec(name, SYSTEM)
