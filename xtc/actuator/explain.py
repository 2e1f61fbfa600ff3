"""The meaning of the kernel's refusals for a router's cap, and how an operator can fix them."""

import errno

from common.units import CapFraction, format_cap
from xtc.errors import ActuatorError, Admission, Denied, Gone, Permanent, Transient, Unsupported

_PRIVILEGE = "run as root, or as the owner of a delegated group, with cgroupfs mounted writable"
_PROMISED = "SCHED_DEADLINE has reserved all CPU time that the kernel allows (95 % of the CPUs)"
_ROOM = "lower other caps, raise kernel.sched_rt_runtime_us, or move the router"
_NESTED = (
    "its quota may not exceed its parent's share, nor fall below a child's or its own burst: "
    "raise the parent's quota, or lower the children's and cpu.cfs_burst_us"
)


def explain_cgroup(path: str, error: OSError) -> ActuatorError:
    """Return the meaning of the kernel's refusal for a control group, and the fix."""
    match error.errno:
        case errno.ENOENT | errno.ENODEV | errno.ENOTDIR:
            return Gone(path, "the control group does not exist")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Denied(path, f"may not be written: {error.strerror}", _PRIVILEGE)
        case errno.EINVAL:
            return Permanent(path, "the kernel refuses this quota", _NESTED)
        case _:
            return Transient(path, f"{error.strerror}")


def explain_namespace(path: str, error: OSError) -> ActuatorError:
    """Return the meaning of a refusal in the router's namespace, and the fix."""
    where = f" ({error.filename})" if error.filename else ""
    match error.errno:
        case errno.ENOENT | errno.ENODEV | errno.EINVAL:
            return Gone(path, f"the namespace or interface does not exist{where}")
        case errno.EPERM | errno.EACCES:
            return Denied(path, f"may not be entered{where}", "give the daemon CAP_SYS_ADMIN")
        case errno.EOPNOTSUPP | errno.ENOSYS | errno.ENOPROTOOPT:
            fix = (
                "use interfaces whose driver has NAPI (veth, virtio, NICs), on Linux 5.14 or later"
            )
            return Unsupported(path, f"threaded NAPI: {error.strerror}{where}", fix)
        case errno.ENXIO:
            fix = "switch TSO off there: ethtool -K <other end> tso off"
            return Unsupported(path, f"{error.strerror}{where}", fix)
        case errno.ENOTUNIQ:
            fix = "name the routers' interfaces differently, or use Linux 6.8 or later"
            return Unsupported(path, str(error.strerror), fix)
        case _:
            return Transient(path, f"{error.strerror}{where}")


def explain_scheduling(path: str, error: OSError) -> ActuatorError:
    """Return the meaning of a refusal of sched_setattr(2), and the fix."""
    match error.errno:
        case errno.EBUSY:
            return Admission(path, _PROMISED, _ROOM)
        case errno.EPERM:
            problem = "SCHED_DEADLINE is not permitted"
            fix = "give the daemon CAP_SYS_NICE; unpin the thread: it must be free to use all CPUs"
            return Denied(path, problem, fix)
        case errno.EINVAL:
            fix = "set period_us within kernel.sched_deadline_period_min_us and _max_us"
            return Permanent(path, "the kernel refuses this period", fix)
        case errno.ENOSYS:
            return Unsupported(path, str(error.strerror), "use a cgroup quota")
        case _:
            return Transient(path, f"sched_setattr: {error.strerror}")


def explain_admission(
    path: str, wanted: float, *, others: float, room: CapFraction
) -> ActuatorError:
    """Return the reservation that was refused, and how much is left for the router.

    Args:
        path: the router's namespace.
        wanted: the CPUs that its threads were to reserve.
        others: those that all other deadline threads reserve.
        room: those that the kernel can reserve in all.
    """
    left = CapFraction(max(0.0, room - others))
    problem = (
        f"{_PROMISED}: {format_cap(CapFraction(wanted))} is wanted, and "
        f"{format_cap(left)} of {format_cap(room)} is left for this router"
    )
    return Admission(path, problem, _ROOM)


class Translated:
    """Turns the kernel's errors for one group into typed errors; a class for speed."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, OSError):
            raise explain_cgroup(self._path, error) from error
        if isinstance(error, ValueError):
            raise Permanent(self._path, f"its files are no control group's: {error}") from error
