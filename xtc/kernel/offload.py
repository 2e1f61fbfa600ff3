"""Offloads of one interface in the calling thread's namespace (ethtool ioctl)."""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from pyroute2.ethtool.ioctl import IoctlEthtool, NoSuchDevice, NotSupportedError

_GRO: Final = "generic-receive-offload"
_TSO: Final = frozenset(
    {
        "tx-tcp-segmentation",
        "tx-tcp-ecn-segmentation",
        "tx-tcp-mangleid-segmentation",
        "tx-tcp6-segmentation",
    }
)


def gro(interface: str) -> bool:
    """Return whether GRO is on. Raises OSError: ENODEV, EOPNOTSUPP."""
    with _ethtool(interface) as device:
        return bool(device.get_offload_flags()[_GRO])


def set_gro(interface: str, *, on: bool) -> None:
    """Switch GRO; a veth has a NAPI only while it is on. Raises OSError: ENODEV, EPERM."""
    with _ethtool(interface) as device:
        device.set_offload_flag(_GRO, int(on))


def tso(interface: str) -> tuple[str, ...]:
    """Return the TCP segmentation offloads that are on, by ethtool's names."""
    with _ethtool(interface) as device:
        features = device.get_features()
        return tuple(sorted(name for name in _TSO if features.is_active(name)))


def set_tso(interface: str, active: Iterable[str]) -> None:
    """Leave exactly these TCP segmentation offloads on. Raises OSError: ENODEV, EPERM."""
    wanted = frozenset(active)
    with _ethtool(interface) as device:
        features = device.get_features()
        changed = [name for name in _TSO if features.is_active(name) != (name in wanted)]
        for name in changed:
            features.set_value(name, name in wanted)
        if changed:
            device.set_features(features)


@contextmanager
def _ethtool(interface: str) -> Iterator[IoctlEthtool]:
    device = IoctlEthtool(interface)
    try:
        yield device
    except NoSuchDevice as error:
        raise OSError(errno.ENODEV, "no such interface", interface) from error
    except NotSupportedError as error:
        raise OSError(errno.EOPNOTSUPP, "offloads cannot be switched", interface) from error
    finally:
        device.close()
