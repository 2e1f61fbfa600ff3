"""The meaning of libvirt's errors for a router's cap, and how an operator can fix them."""

from typing import Final

from xtc.errors import ActuatorError, Denied, Gone, Permanent, Transient, Unsupported
from xtc.libvirt.api import Code

_UNSUPPORTED: Final = {
    Code.NO_SUPPORT,
    Code.CONFIG_UNSUPPORTED,
    Code.ARGUMENT_UNSUPPORTED,
    Code.OPERATION_UNSUPPORTED,
}
_DENIED: Final = {
    Code.OPERATION_DENIED,
    Code.AUTH_FAILED,
    Code.AUTH_CANCELLED,
    Code.ACCESS_DENIED,
}
_GRANT: Final = "run as root, or let polkit grant org.libvirt.unix.manage"
_NESTED: Final = (
    "a quota may not exceed that of the machine or slice above it, nor fall below that of a "
    "group inside it"
)
_KERNEL_REFUSED: Final = "Invalid argument"
"""EINVAL from a control group's file, in the message of a SYSTEM_ERROR."""


def explain(target: str, error: Exception) -> ActuatorError:
    """Return the typed error for an error of libvirt-python.

    The domain of the call may be gone, stopped, or impossible to cap; other errors are worth a
    retry.
    """
    code, words = code_of(error), message_of(error)
    match code:
        case None:
            return _refused_by_bindings(target, error)
        case Code.NO_DOMAIN:
            told: ActuatorError = Gone(target, "the domain does not exist")
        case Code.OPERATION_INVALID:
            told = _invalid(target, words)
        case Code.SYSTEM_ERROR if _KERNEL_REFUSED in words:
            told = Permanent(target, f"the kernel refuses this quota: {words}", _NESTED)
        case Code.INVALID_ARG:
            told = Permanent(target, words)
        case _ if code in _DENIED:
            told = Denied(target, words, _GRANT)
        case _:
            told = (Unsupported if code in _UNSUPPORTED else Transient)(target, words)
    return told


def _invalid(target: str, words: str) -> ActuatorError:
    """OPERATION_INVALID means a stopped domain, or a host without cgroups."""
    if "cgroup" in words:
        return Unsupported(target, words, "mount the cpu controller of cgroups")
    return Gone(target, "the domain does not run")


def _refused_by_bindings(target: str, error: Exception) -> ActuatorError:
    """libvirt-python checks names and types itself, and raises Python's errors."""
    if isinstance(error, LookupError):
        return Unsupported(target, f"this hypervisor has no such scheduler parameter: {error}")
    return Permanent(target, f"{type(error).__name__}: {error}")


def code_of(error: Exception) -> int | None:
    """Return libvirt's error number, None if the error is not libvirt's."""
    get = getattr(error, "get_error_code", None)
    return None if get is None else int(get() or 0)


def message_of(error: Exception) -> str:
    """Return libvirt's message."""
    get = getattr(error, "get_error_message", None)
    return str(error if get is None else get() or error)
