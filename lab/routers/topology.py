"""The lab: a Dom0 and virtual routers in network namespaces of this machine.

A packet of a source in Dom0 leaves through ``vifN.0``, enters the router at ``r0``, leaves it at
``r1`` and returns to Dom0 through ``vifN.1``. So Dom0's receive counters of a router's interfaces
are its throughput, and Dom0's transmit counters (with drops) are its offered load, as on a Xen
host. With separate machines, sources and sinks are there instead, and Dom0 bridges between them and
the routers, all on one CPU (`lab.routers.machines`).
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from lab.errors import BadRequestError
from lab.plan import (
    DEFAULT_PREFIX,
    DOM0,
    MAX_ROUTERS,
    Port,
    RouterKind,
    check_kind,
    check_name,
    check_prefix,
    namespace,
    uplinks,
)
from lab.programs.processes import Place
from lab.routers import machines, receive
from lab.routers.router import Router, Surroundings
from lab.system import cgroups, links, namespaces, requirements
from lab.system.teardown import Remains, alone, tear_down


@dataclass(frozen=True, slots=True)
class Cpus:
    """The CPUs that programs are pinned to; None lets the kernel choose."""

    source: int | None = None
    """For sources and sinks."""
    forwarder: int | None = None
    """For the routers in user space."""
    dom0: int | None = None
    """For Dom0's packet processing, if there are separate machines."""


def default_cpus() -> Cpus:
    """Return the first usable CPU for sources, the last for forwarders; no pins if only one."""
    usable = sorted(os.sched_getaffinity(0))
    return Cpus(usable[0], usable[-1]) if len(usable) > 1 else Cpus()


def cpus_beside() -> Cpus:
    """Return pins that reserve the last usable CPU for Dom0; none if there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    return Cpus(usable[0], usable[-2], usable[-1]) if len(usable) > 1 else Cpus()


class Lab:
    """A running lab, as a context manager; leaving it removes all that it created.

    A lab with the same prefix, running or left over, is torn down first. Its programs die with the
    thread that started them, even if that is killed; ``tear_down`` removes the rest.

    Raises:
        BadRequestError: the prefix is invalid.
        MissingRequirementError: this machine cannot hold a lab.
        LabError: ``beside`` needs receiving threads, which this kernel lacks (Linux 6.8).
    """

    def __init__(
        self, prefix: str = DEFAULT_PREFIX, cpus: Cpus | None = None, *, beside: bool = False
    ) -> None:
        """Create Dom0.

        Args:
            prefix: prefix of the names of all that it creates.
            cpus: the CPUs of programs; see ``default_cpus``, and ``cpus_beside``.
            beside: whether sources and sinks run on separate machines
            (`lab.routers.machines`).
        """
        self.prefix = check_prefix(prefix)
        self.routers: dict[str, Router] = {}
        self.dom0_threads: list[int] = []
        """Kernel threads that process Dom0's packets, if there are separate machines."""
        self._beside = beside
        self._cpus = cpus or (cpus_beside() if beside else default_cpus())
        requirements.check()
        self._dom0 = namespace(prefix, DOM0)
        with alone(prefix):
            tear_down(prefix)
            try:
                self._make_dom0()
            except BaseException:  # even Ctrl-C must leave nothing behind
                tear_down(prefix)
                raise

    @property
    def dom0_netns(self) -> str:
        """The path of Dom0's network namespace."""
        return namespaces.path(self._dom0)

    def add_router(self, name: str, kind: RouterKind) -> Router:
        """Create a router, connect it to Dom0 and start forwarding.

        Raises:
            BadRequestError: the name or kind is invalid, is in use, or there are already 254
                routers.
            ProgramError: the forwarder does not start.
        """
        self._check_new(name)
        router = self._make_router(check_name(name), check_kind(kind))
        self.routers[name] = router
        netns = namespace(self.prefix, name)
        namespaces.create(netns)
        for port in router.ports:
            self._connect(netns, port, kind)
        if router.kind == "kernel":
            namespaces.write_sysctls(netns, {"ipv4/ip_forward": 1})
        else:
            router.start_forwarder()
        return router

    def run_in_dom0(self, argv: Sequence[str], **options: Any) -> "subprocess.Popen[Any]":
        """Start any program in Dom0's namespace, with the current /sys; ``options`` go to Popen.

        The kernel kills it when the calling thread ends.
        """
        return subprocess.Popen(Place(self.dom0_netns).command(argv), **options)  # noqa: S603  the caller's program

    def died(self) -> list[str]:
        """Return which programs exited without being stopped, as ``router: program``."""
        return [
            f"{name}: {dead}" for name, router in self.routers.items() for dead in router.died()
        ]

    def close(self) -> Remains:
        """Stop every program and remove the lab; return what was removed.

        A later lab with the same prefix, which has replaced this one, is left alone.

        Raises:
            LabError: something cannot be removed.
        """
        for router in self.routers.values():
            router.stop()
        with self._dom0_handle as handle, alone(self.prefix):
            return tear_down(self.prefix) if handle.current() else Remains([], [], [])

    def _make_dom0(self) -> None:
        namespaces.create(self._dom0)
        self._dom0_handle = namespaces.Handle(self._dom0)
        links.prepare_dom0(self._dom0)
        if self._beside:
            self._add_machines()

    def _add_machines(self) -> None:
        machines.build(self.prefix)
        for uplink, machine in zip(uplinks(), machines.machine_names(self.prefix), strict=True):
            self._carry(uplink.host_interface)
            receive.on_cpu(machine, uplink.machine_interface, self._cpus.source)

    def _connect(self, netns: str, port: Port, kind: RouterKind) -> None:
        if not self._beside:
            links.connect(self._dom0, netns, port, kind)
            return
        machines.connect(self.prefix, netns, port, kind)
        self._carry(port.host_interface)

    def _carry(self, interface: str) -> None:
        """Process packets received by an interface of Dom0 on Dom0's CPU."""
        thread = receive.on_cpu(self._dom0, interface, self._cpus.dom0)
        self.dom0_threads.append(thread)

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
        index = len(self.routers) + 1
        return Router(name, kind, index, netns, group, self._surroundings(inside))

    def _surroundings(self, inside: Place) -> Surroundings:
        names = machines.machine_names(self.prefix) if self._beside else [self._dom0] * 2
        source, sink = (Place(namespaces.path(name), cpu=self._cpus.source) for name in names)
        return Surroundings(self._dom0, source, sink, inside, self._beside)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
