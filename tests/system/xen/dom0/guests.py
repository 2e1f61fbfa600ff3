"""The virtual routers of dom0: their life, their caps and their counters, by libvirt and /proc."""

import re
import subprocess
import time
from pathlib import Path
from typing import Final

import libvirt

OFFERED_PPS: Final = 200
"""Sent towards each guest all the time."""
WORK_US: Final = 2000
"""CPU time that a guest needs for a packet, about: one CPU forwards 500 packets/s."""
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
        xml = XML.format(name=name, number=number, work=WORK_US)
        self._domain = connection.defineXML(xml)
        self._address = f"10.2.{number}.1"

    def start(self) -> None:
        """Start it."""
        self._domain.create()

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
        """Xen's number of its present life."""
        found = re.search(r"<domain type='xen' id='(\d+)'", self._domain.XMLDesc(0))
        if found is None:
            raise RuntimeError(f"{self.name} does not run")
        return int(found[1])

    @property
    def uuid(self) -> str:
        """What names it through all its lives."""
        return str(self._domain.UUIDString())

    @property
    def cap(self) -> int:
        """The cap in force in percent; 0 is none."""
        return int(self._domain.schedulerParametersFlags(0)["cap"])

    def set_cap(self, percent: int) -> float:
        """Set the cap through libvirt and return how long that took, in seconds."""
        start = time.monotonic()
        self._domain.setSchedulerParametersFlags({"cap": percent}, 0)
        return time.monotonic() - start

    def cpu_seconds(self) -> float:
        """Return the CPU time of this life."""
        return float(self._domain.info()[4]) / 1e9

    def forwarded(self) -> int:
        """Return the packets that came back to dom0 in this life."""
        return self._packets(1, column=1)

    def offered(self) -> int:
        """Return the packets that dom0 sent, or had to drop."""
        return self._packets(0, column=9) + self._packets(0, column=11)

    def _packets(self, interface: int, column: int) -> int:
        name = f"vif{self.domid}.{interface}"
        for line in Path("/proc/net/dev").read_text().splitlines():
            found, _, numbers = line.partition(":")
            if found.strip() == name:
                return int(numbers.split()[column])
        return 0


def measure(guests: list[Guest], seconds: float) -> dict[str, dict[str, float]]:
    """Watch guests and return what each forwards and uses: packets/s and percent of a CPU."""
    before = [(time.monotonic(), *_counters(guest)) for guest in guests]
    time.sleep(seconds)
    result = {}
    for guest, (start, *old) in zip(guests, before, strict=True):
        span, new = time.monotonic() - start, _counters(guest)
        rates = [(n - o) / span for n, o in zip(new, old, strict=True)]
        result[guest.name] = {
            "throughput_pps": round(rates[0], 1),
            "offered_pps": round(rates[1], 1),
            "cpu_percent": round(rates[2] * 100, 2),
            "cap_percent": guest.cap,
        }
    return result


def _counters(guest: Guest) -> tuple[int, int, float]:
    return guest.forwarded(), guest.offered(), guest.cpu_seconds()
