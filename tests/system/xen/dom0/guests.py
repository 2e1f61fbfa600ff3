"""The virtual routers of dom0: their life and their caps, by libvirt."""

import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from typing import Final

import libvirt
from counters import forwarded

OFFERED_PPS: Final = 200
"""Sent towards each guest all the time."""
WORK_US: Final = 2000
"""CPU time that a guest needs for a packet, about: one CPU forwards 500 packets/s."""
TRIES: Final = 3
REQUEST: Final = 0x88B5
"""The EtherType of requests to the thief in a guest, the first for local experiments."""
PERIOD_US: Final = 100_000
"""The thief's, as in guest/thief.c."""
COPIES: Final = 3
"""Of a request: it has no answer."""
SHORTEST: Final = 60
"""Bytes of a frame."""
MACS: Final = ("00163e000{}00", "02000000010{}")
"""The first interface of a guest by its number, and dom0's end (network.sh)."""
XML: Final = """
<domain type='xen'>
  <name>{name}</name>
  <memory unit='MiB'>128</memory>
  <vcpu cpuset='1'>1</vcpu>
  <os>
    <type arch='x86_64' machine='xenpv'>linux</type>
    <kernel>/opt/xtc/vmlinux</kernel>
    <initrd>/opt/xtc/guest.cpio</initrd>
    <cmdline>console=hvc0 mitigations=off nokaslr quiet ipv6.disable=1 work_us={work}</cmdline>
  </os>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <interface type='bridge'>
      <mac address='00:16:3e:00:0{number}:00'/><source bridge='in{number}'/>
    </interface>
    <interface type='bridge'>
      <mac address='00:16:3e:00:0{number}:01'/><source bridge='out'/>
    </interface>
    <console type='pty'/>
  </devices>
</domain>
"""


class Guest:
    """A paravirtualised router."""

    def __init__(
        self,
        connection: libvirt.virConnect,
        name: str,
        number: int,
        *,
        offered_pps: float = OFFERED_PPS,
        words: Sequence[str] = (),
    ) -> None:
        """Define it.

        Args:
            connection: to libvirt.
            name: the domain's.
            number: of its bridge.
            offered_pps: what is sent to it.
            words: more words of its kernel's command line.
        """
        self.name, self._number, self._offered_pps = name, number, offered_pps
        self._connection = connection
        xml = XML.format(name=name, number=number, work=" ".join((str(WORK_US), *words)))
        self._domain = connection.defineXML(xml)
        self._address = f"10.2.{number}.1"

    def start(self) -> int:
        """Start it and return how many tries it took: libxl's own patience is for faster hosts.

        Raises:
            libvirt.libvirtError: it cannot be started.
        """
        for number in range(1, TRIES):
            try:
                self._domain.create()
            except libvirt.libvirtError:
                continue
            return number
        self._domain.create()
        return TRIES

    def flood(self) -> None:
        """Send to it from now on, whatever becomes of it, and wait until it forwards."""
        subprocess.Popen(["/opt/xtc/flood", self._address, str(self._offered_pps)])
        deadline = time.monotonic() + 120
        while self.forwarded() < 20:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} does not forward")
            time.sleep(0.5)

    def steal(self, share: float) -> None:
        """Have the thief inside take a share of one CPU from now on; 0 ends that."""
        to, source = (bytes.fromhex(mac.format(self._number)) for mac in MACS)
        wanted = struct.pack("!6s6sHI", to, source, REQUEST, round(share * PERIOD_US))
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((f"in{self._number}", REQUEST))
            for _ in range(COPIES):
                sender.send(wanted.ljust(SHORTEST, b"\0"))
                time.sleep(0.05)

    def destroy(self) -> None:
        """Pull its plug."""
        self._domain.destroy()

    @property
    def domid(self) -> int:
        """Xen's number of its present life; -1 while it does not run."""
        return int(self._connection.lookupByName(self.name).ID())

    @property
    def uuid(self) -> str:
        """What names it through all its lives."""
        return str(self._domain.UUIDString())

    @property
    def cap(self) -> int:
        """The cap in force in percent; 0 is none."""
        return int(self._domain.schedulerParametersFlags(0)["cap"])

    @property
    def weight(self) -> int:
        """The weight in force; Xen begins with 256."""
        return int(self._domain.schedulerParametersFlags(0)["weight"])

    def set_weight(self, weight: int) -> None:
        """Set the weight through libvirt."""
        self._domain.setSchedulerParametersFlags({"weight": weight}, 0)

    def set_cap(self, percent: int) -> float:
        """Set the cap through libvirt and return how long that took, in seconds."""
        start = time.monotonic()
        self._domain.setSchedulerParametersFlags({"cap": percent}, 0)
        return time.monotonic() - start

    def forwarded(self) -> int:
        """Return the packets that came back to dom0 in this life."""
        return forwarded(self.domid)
