"""Virtual routers that are real libvirt domains, wired to the Dom0 of a lab."""

import shutil
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from lab.errors import BadRequestError, MissingRequirementError
from lab.libvirt import bridges, domainxml, requirements
from lab.libvirt.cache import GuestCache
from lab.libvirt.domainxml import FIRST_INDEX, Domain, GuestKind, bridge
from lab.libvirt.errors import LibvirtError
from lab.libvirt.server import PrivateLibvirtd
from lab.plan import MAX_ROUTERS, Port, check_name, ports
from lab.programs.processes import Place, Source, check_rate
from lab.programs.source import DISCARD_PORT, PAYLOAD
from lab.routers.topology import Lab, default_cpus
from lab.system import namespaces

FORWARDING_TIMEOUT_S: Final = 120.0
"""A machine may boot in emulation, next to others."""
_PROBES: Final = 20
_PROBE_S: Final = 0.1
_HOTPLUG_SIDE: Final = 2


@dataclass(slots=True)
class GuestRouter:
    """A virtual router that libvirt runs."""

    domain: Domain
    libvirtd: PrivateLibvirtd
    _dom0: Place
    _sources: list[Source] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name in libvirt."""
        return self.domain.name

    @property
    def uri(self) -> str:
        """The URI of its hypervisor, for clients."""
        return self.libvirtd.uri(domainxml.driver(self.domain.kind))

    @property
    def ports(self) -> tuple[Port, Port]:
        """Its links: towards the source, towards the sink."""
        return ports(self.domain.index)

    @property
    def host_interfaces(self) -> list[str]:
        """The host's ends by their current names: towards the source, towards the sink."""
        return bridges.members(self._netns, *(bridge(port) for port in self.ports))

    @property
    def _netns(self) -> str:
        return Path(self._dom0.netns).name

    def virsh(self, *words: str) -> str:
        """Run a virsh command on its hypervisor and return the output.

        Raises:
            LibvirtError: it failed.
        """
        return self.libvirtd.virsh(domainxml.driver(self.domain.kind), *words)

    def start(self) -> None:
        """Start it as a cold machine, under a new id and with new interfaces.

        Raises:
            LibvirtError: libvirt refuses.
        """
        self.virsh("start", self.name)

    def destroy(self) -> None:
        """Stop it immediately; it stays defined.

        Raises:
            LibvirtError: libvirt refuses.
        """
        self.virsh("destroy", self.name)

    def flood(self, rate_pps: float) -> Source:
        """Send 64-byte UDP packets towards it at a rate in packets/s, through all its restarts.

        Raises:
            BadRequestError: the rate is not within [0, 1e9].
            ProgramError: the source does not start.
        """
        near, far = self.ports
        ends = [near.host_address, far.nowhere_address, str(check_rate(rate_pps))]
        self._sources.append(Source("programs.source", ends, self._dom0))
        return self._sources[-1]

    def wait_until_forwarding(self, seconds: float = FORWARDING_TIMEOUT_S) -> float:
        """Send probes until they arrive at the far side; return the seconds that it took.

        Raises:
            LibvirtError: they do not within that time.
        """
        start = time.monotonic()
        while not namespaces.inside(self._netns, self._probe):
            if time.monotonic() - start > seconds:
                problem = f"it forwards nothing in {seconds:g} s, and is {self._state()}"
                raise LibvirtError(f"wait for {self.name}", problem)
        return time.monotonic() - start

    def _state(self) -> str:
        """Return its state in libvirt's words, with the reason."""
        return " ".join(self.virsh("domstate", self.name, "--reason").split())

    def forwarded(self) -> int:
        """Return the packets forwarded to its far side since its start."""
        far = bridges.members(self._netns, bridge(self.ports[1]))
        return namespaces.inside(self._netns, lambda: sum(_received(name) for name in far))

    def set_quota(self, cap: float | None, period_us: int = 100_000, scope: str = "vcpu") -> None:
        """Cap it at a fraction of one CPU with virsh, like an operator without xtc.

        Raises:
            LibvirtError: libvirt refuses.
        """
        quota = -1 if cap is None else round(cap * period_us)
        period = f"{scope}_period={period_us}"
        self.virsh(
            "schedinfo", self.name, "--live", "--set", period, "--set", f"{scope}_quota={quota}"
        )

    def attach_interface(self) -> str:
        """Hot-plug a third interface, on a separate bridge; return its MAC.

        Raises:
            LibvirtError: libvirt refuses.
        """
        port = Port(self.domain.index, _HOTPLUG_SIDE)
        bridges.add(self._netns, port)
        model = "virtio" if self.domain.kind == "qemu" else ""
        file = self.domain.folder / "interface.xml"
        file.write_text(domainxml.interface(bridge(port), port.router_mac, model))
        self.virsh("attach-device", self.name, str(file), "--live")
        return port.router_mac

    def migrate(self, target: PrivateLibvirtd) -> "GuestRouter":
        """Move a running machine to another libvirtd of the same lab, and return the router there.

        Its control groups go below the target's partition, as they would on another host.

        Raises:
            LibvirtError: libvirt refuses.
        """
        xml, here = self.virsh("dumpxml", self.name, "--migratable"), self.libvirtd.partition
        file = self.domain.folder / "target.xml"
        file.write_text(xml.replace(f"/{here}</partition>", f"/{target.partition}</partition>"))
        channel = f"unix://{target.layout.folder}/migration"
        uris = ["--desturi", target.uri("qemu"), "--migrateuri", channel]
        self.virsh("migrate", self.name, "--live", "--p2p", "--unsafe", "--xml", str(file), *uris)
        return GuestRouter(self.domain, target, self._dom0)

    def stop_sources(self) -> None:
        """Stop its traffic."""
        for source in self._sources:
            source.stop()

    def _probe(self) -> bool:
        far = bridges.members(self._netns, bridge(self.ports[1]))
        before = sum(_received(name) for name in far)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.connect((self.ports[1].nowhere_address, DISCARD_PORT))
            for _ in range(_PROBES):
                sock.send(bytes(PAYLOAD))
        time.sleep(_PROBE_S)
        return bool(far) and sum(_received(name) for name in far) - before >= _PROBES


def _received(interface: str) -> int:
    """Return the packets received by an interface of the calling thread's network namespace."""
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if name.strip() == interface:
            return int(counters.split()[1])
    return 0


class GuestHost:
    """Routers of one private libvirtd, in the Dom0 of a running lab; a context manager.

    Leaving it stops the routers' traffic; the routers stop with their libvirtd, which must stop
    before the lab.
    """

    def __init__(
        self, lab: Lab, libvirtd: PrivateLibvirtd, cache: GuestCache | None = None
    ) -> None:
        """Prepare for routers in that lab.

        Raises:
            MissingRequirementError: this machine cannot run them.
        """
        self._cache = cache or GuestCache()
        if lacking := requirements.missing(self._cache):
            raise MissingRequirementError(lacking)
        self.lab, self.libvirtd = lab, libvirtd
        self.routers: dict[str, GuestRouter] = {}

    def add_router(self, name: str, kind: GuestKind) -> GuestRouter:
        """Create a router, connect it to Dom0 and start it; it takes some time to forward.

        Raises:
            BadRequestError: the name or kind is invalid, or is in use.
            LibvirtError: libvirt refuses.
        """
        if name in self.routers or FIRST_INDEX + len(self.routers) > MAX_ROUTERS:
            raise BadRequestError("name", name, "a name that no other router has")
        domainxml.check_guest_kind(kind)
        domain = Domain(check_name(name), kind, FIRST_INDEX + len(self.routers), self._folder(name))
        router = GuestRouter(domain, self.libvirtd, self._dom0)
        bridges.connect(Path(self.lab.dom0_netns).name, *router.ports)
        router.virsh("define", str(self._write(domain)))
        router.start()
        self.routers[name] = router
        return router

    @property
    def _dom0(self) -> Place:
        return Place(self.lab.dom0_netns, cpu=default_cpus().source)

    def _folder(self, name: str) -> Path:
        return self.libvirtd.layout.folder / f"router-{name}"

    def _write(self, domain: Domain) -> Path:
        if domain.kind == "qemu":
            domain.folder.mkdir()
        else:
            shutil.copytree(self._cache.container_root, domain.folder / "root", symlinks=True)
        file = domain.folder / "domain.xml"
        file.write_text(domainxml.domain(domain, self.libvirtd.partition, self._cache))
        return file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for router in self.routers.values():
            router.stop_sources()
