"""Offloads of one interface in the calling thread's namespace (ethtool ioctl)."""

import errno
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyroute2.ethtool.ioctl import IoctlEthtool, NoSuchDevice, NotSupportedError

_GRO, _GRO_LIST, _USO = "rx-gro", "rx-gro-list", "tx-udp-segmentation"
_TSO: Final = frozenset(
    {
        "tx-tcp-segmentation",
        "tx-tcp-ecn-segmentation",
        "tx-tcp-mangleid-segmentation",
        "tx-tcp6-segmentation",
    }
)


_names: list[str] = []
"""The offloads that this kernel supports, read once: they are the same for every interface."""


class _Device(IoctlEthtool):  # type: ignore[misc]  # pyroute2 ships no type information
    def get_stringset(self, *arguments: int, **named: int) -> list[str]:
        """Return the kernel's names, cached: reading them takes a hundred times as long."""
        if not _names:
            _names.extend(super().get_stringset(*arguments, **named))
        return _names


def gro(interface: str) -> bool:
    """Return whether GRO is on. Raises OSError: ENODEV, EOPNOTSUPP."""
    return _is_on(interface, _GRO)


def set_gro(interface: str, *, on: bool) -> None:
    """Switch GRO; a veth has a NAPI only while it is on. Raises OSError: ENODEV, EPERM."""
    _switch(interface, {_GRO: on})


def gro_list(interface: str) -> bool:
    """Return whether GRO chains packets of a flow, not limited by `gro_max_size` (Linux 5.6)."""
    return _is_on(interface, _GRO_LIST)


def set_gro_list(interface: str, *, on: bool) -> None:
    """Switch the chaining of packets by GRO."""
    _switch(interface, {_GRO_LIST: on})


def uso(interface: str) -> bool:
    """Return whether joined UDP datagrams pass whole; otherwise the kernel splits them."""
    return _is_on(interface, _USO)


def set_uso(interface: str, *, on: bool) -> None:
    """Switch UDP segmentation offload."""
    _switch(interface, {_USO: on})


def tso(interface: str) -> tuple[str, ...]:
    """Return the TCP segmentation offloads that are on, by ethtool's names."""
    with _ethtool(interface) as device:
        features = device.get_features()
        return tuple(sorted(name for name in _TSO if features.is_active(name)))


def set_tso(interface: str, active: Iterable[str]) -> None:
    """Leave exactly these TCP segmentation offloads on. Raises OSError: ENODEV, EPERM."""
    wanted = frozenset(active)
    _switch(interface, {name: name in wanted for name in _TSO})


def _is_on(interface: str, offload: str) -> bool:
    """Return whether an offload is on, by ethtool's name; an unsupported one is off."""
    with _ethtool(interface) as device:
        features = device.get_features()
        return offload in features and bool(features.is_active(offload))


def _switch(interface: str, wanted: Mapping[str, bool]) -> None:
    with _ethtool(interface) as device:
        features = device.get_features()
        known = {name: on for name, on in wanted.items() if name in features}
        changed = {name: on for name, on in known.items() if features.is_active(name) != on}
        for name, on in changed.items():
            features.set_value(name, on)
        if changed:
            device.set_features(features)


@contextmanager
def _ethtool(interface: str) -> Iterator[IoctlEthtool]:
    device = _Device(interface)
    try:
        yield device
    except NoSuchDevice as error:
        raise OSError(errno.ENODEV, "no such interface", interface) from error
    except NotSupportedError as error:
        raise OSError(errno.EOPNOTSUPP, "offloads cannot be switched", interface) from error
    finally:
        device.close()
