"""What each of libvirt's errors means for a router, code by code; words as they were seen."""

import pytest
from fake_guest import FakeLibvirtError, closed

from xtc.errors import ActuatorError, Denied, Gone, Permanent, Transient, Unsupported
from xtc.libvirt.api import Code
from xtc.libvirt.explain import code_of, explain, message_of

MEANINGS: dict[Code, type[ActuatorError]] = {
    Code.INTERNAL_ERROR: Transient,
    Code.NO_SUPPORT: Unsupported,
    Code.INVALID_ARG: Permanent,
    Code.OPERATION_DENIED: Denied,
    Code.SYSTEM_ERROR: Transient,
    Code.NO_DOMAIN: Gone,
    Code.AUTH_FAILED: Denied,
    Code.OPERATION_INVALID: Gone,
    Code.CONFIG_UNSUPPORTED: Unsupported,
    Code.ARGUMENT_UNSUPPORTED: Unsupported,
    Code.AUTH_CANCELLED: Denied,
    Code.NO_DOMAIN_METADATA: Transient,
    Code.OPERATION_UNSUPPORTED: Unsupported,
    Code.ACCESS_DENIED: Denied,
}


def test_every_code_that_is_told_apart_has_a_meaning_here() -> None:
    assert MEANINGS.keys() == set(Code)


@pytest.mark.parametrize(("code", "kind"), MEANINGS.items())
def test_each_code(code: Code, kind: type[ActuatorError]) -> None:
    error = explain("vr", FakeLibvirtError(code, "words"))
    assert type(error) is kind
    assert error.target == "vr"


@pytest.mark.parametrize("code", [0, 6, 68, 86, 999])
def test_any_other_code_is_worth_another_try(code: int) -> None:
    assert type(explain("vr", FakeLibvirtError(code, "words"))) is Transient


def test_a_dead_connection_is_worth_another_try() -> None:
    assert type(explain("vr", closed())) is Transient


def test_a_quota_that_the_kernel_refuses_names_the_rule() -> None:
    words = "Invalid value '20000' for 'cpu.cfs_quota_us': Invalid argument"
    error = explain("vr", FakeLibvirtError(38, words))
    assert type(error) is Permanent
    assert words in error.problem
    assert "above" in error.fix


def test_no_libvirtd_is_no_refusal_of_the_kernel() -> None:
    words = "Failed to connect socket to '/var/run/libvirt/libvirt-sock': No such file or directory"
    error = explain("qemu:///system", FakeLibvirtError(38, words))
    assert type(error) is Transient
    assert words in str(error)


def test_a_host_without_cgroups_is_no_stopped_domain() -> None:
    words = "Requested operation is not valid: cgroup CPU controller is not mounted"
    error = explain("vr", FakeLibvirtError(55, words))
    assert type(error) is Unsupported
    assert error.fix


@pytest.mark.parametrize("code", [29, 45, 79, 88])
def test_who_is_denied_is_told_what_to_grant(code: int) -> None:
    assert "polkit" in explain("vr", FakeLibvirtError(code, "no")).fix


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (LookupError("global_quota"), Unsupported),
        (KeyError("cap"), Unsupported),
        (OverflowError("too large"), Permanent),
        (TypeError("an integer is required"), Permanent),
    ],
)
def test_what_libvirt_python_refuses_by_itself(error: Exception, kind: type[ActuatorError]) -> None:
    explained = explain("vr", error)
    assert type(explained) is kind
    assert str(error) in explained.problem


def test_an_error_without_words_has_some() -> None:
    silent = FakeLibvirtError(1, "")
    assert code_of(silent) == 1
    assert message_of(silent) == ""
    assert code_of(ValueError("x")) is None
    assert message_of(ValueError("x")) == "x"
