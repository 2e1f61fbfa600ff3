"""The virtual routers of dom0: their life and their caps, by libvirt."""

import subprocess
import time
from typing import Final

import libvirt
from counters import forwarded

OFFERED_PPS: Final = 200
"""Sent towards each guest all the time."""
WORK_US: Final = 2000
"""CPU time that a guest needs for a packet, about: one CPU forwards 500 packets/s."""
TRIES: Final = 3
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

    def __init__(self, connection: libvirt.virConnect, name: str, number: int) -> None:
        self.name = name
        self._connection = connection
        xml = XML.format(name=name, number=number, work=WORK_US)
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
        subprocess.Popen(["/opt/xtc/flood", self._address, str(OFFERED_PPS)])
        deadline = time.monotonic() + 120
        while self.forwarded() < 20:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} does not forward")
            time.sleep(0.5)

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
