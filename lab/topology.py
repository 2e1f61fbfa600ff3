"""The lab: a Dom0 and virtual routers in network namespaces of this machine.

A packet of a source in Dom0 leaves by ``vifN.0``, enters the router at ``r0``, leaves it at ``r1``
and comes back to Dom0 by ``vifN.1``. So Dom0's receive counters of a router's interfaces are its
throughput, and Dom0's transmit counters (with drops) are its offered load, as on a Xen host.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from lab import cgroups, links, namespaces, requirements
from lab.errors import BadRequestError
from lab.plan import (
    DEFAULT_PREFIX,
    DOM0,
    MAX_ROUTERS,
    RouterKind,
    check_kind,
    check_name,
    check_prefix,
    namespace,
)
from lab.processes import Place
from lab.router import Router
from lab.teardown import Remains, tear_down


@dataclass(frozen=True, slots=True)
class Cpus:
    """Which CPU sources and forwarders are pinned to; None leaves it to the kernel."""

    source: int | None = None
    forwarder: int | None = None


def default_cpus() -> Cpus:
    """Return the first usable CPU for sources and the last for forwarders; no pins if it is one."""
    usable = sorted(os.sched_getaffinity(0))
    return Cpus(usable[0], usable[-1]) if len(usable) > 1 else Cpus()


class Lab:
    """A running lab, as a context manager; leaving it removes all that it made.

    A lab that bears the same prefix, running or left behind, is torn down first. Its programs die
    with the thread that started them, even where that is killed; ``tear_down`` removes the rest.

    Raises:
        BadRequestError: the prefix is none.
        MissingRequirementError: this machine cannot hold a lab.
    """

    def __init__(self, prefix: str = DEFAULT_PREFIX, cpus: Cpus | None = None) -> None:
        """Make Dom0; ``cpus`` says where programs are pinned (see ``default_cpus``)."""
        self.prefix = check_prefix(prefix)
        self.routers: dict[str, Router] = {}
        self._cpus = cpus or default_cpus()
        requirements.check()
        tear_down(prefix)
        self._dom0 = namespace(prefix, DOM0)
        try:
            namespaces.create(self._dom0)
            self._dom0_handle = namespaces.Handle(self._dom0)
            links.prepare_dom0(self._dom0)
        except BaseException:  # Ctrl-C too must leave nothing behind
            tear_down(prefix)
            raise

    @property
    def dom0_netns(self) -> str:
        """The path of Dom0's network namespace."""
        return namespaces.path(self._dom0)

    def add_router(self, name: str, kind: RouterKind) -> Router:
        """Make a router, wire it to Dom0 and have it forward.

        Raises:
            BadRequestError: the name or kind is none, is taken, or there are 254 routers already.
            ProgramError: the forwarder does not start.
        """
        self._check_new(name)
        router = self._make_router(check_name(name), check_kind(kind))
        self.routers[name] = router
        netns = namespace(self.prefix, name)
        namespaces.create(netns)
        for port in router.ports:
            links.connect(self._dom0, netns, port, kind)
        if router.kind == "kernel":
            namespaces.write_sysctls(netns, {"ipv4/ip_forward": 1})
        else:
            router.start_forwarder()
        return router

    def run_in_dom0(self, argv: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
        """Start any program in Dom0's namespace, with /sys as it is; ``options`` go to Popen.

        The kernel kills it when the thread that called this ends.
        """
        return subprocess.Popen(Place(self.dom0_netns).command(argv), **options)  # noqa: S603  the caller's program

    def died(self) -> list[str]:
        """Return which programs ended without being stopped, as ``router: program``."""
        return [
            f"{name}: {dead}" for name, router in self.routers.items() for dead in router.died()
        ]

    def close(self) -> Remains:
        """End every program and remove the lab; return what was removed.

        A later lab of the same prefix, which has removed this one, stays as it is.

        Raises:
            LabError: something cannot be removed.
        """
        for router in self.routers.values():
            router.stop()
        with self._dom0_handle as handle:
            return tear_down(self.prefix) if handle.current() else Remains([], [], [])

    def _check_new(self, name: str) -> None:
        if name in self.routers:
            raise BadRequestError("name", name, "a name that no other router has")
        if len(self.routers) >= MAX_ROUTERS:
            raise BadRequestError("name", name, f"needed: a lab holds {MAX_ROUTERS} routers")

    def _make_router(self, name: str, kind: RouterKind) -> Router:
        netns = namespaces.path(namespace(self.prefix, name))
        root = cgroups.find_root() if kind == "user-space" else None
        group = cgroups.create(root, self.prefix, name) if root else None
        inside = Place(netns, str(group) if group else None, self._cpus.forwarder)
        dom0 = Place(self.dom0_netns, cpu=self._cpus.source)
        return Router(name, kind, len(self.routers) + 1, netns, group, dom0, inside)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
