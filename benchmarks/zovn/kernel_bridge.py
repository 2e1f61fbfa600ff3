"""A Linux bridge in a namespace: guests are packet sockets on veths, as there is no vhost-net here.

What the bridge does runs on one CPU, by receive packet steering; sending into a veth and reading
from a packet socket are the guests' work, as far as the kernel lets it be.
"""

import os
import subprocess
from itertools import count
from typing import Final

from benchmarks.zovn.traffic import Counted, Device, first_cpu

FRAMES: Final = 1024
"""Of each ring of a packet socket."""
_numbers: Final = count()


class KernelBridge:
    """Ports are `pN`, in the bridge; guests use the other ends, `gN`."""

    def __init__(self) -> None:
        self._netns = f"zovnb{os.getpid()}-{next(_numbers)}"
        self.inside = ["ip", "netns", "exec", self._netns]
        self.devices: list[Device] = []

    def start(self, ports: int) -> None:
        """Make namespace, bridge and ports."""
        _run("ip", "netns", "add", self._netns)
        self._inside("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        self._inside("ip", "link", "add", "br0", "type", "bridge")
        self._inside("ip", "link", "set", "br0", "up")
        for number in range(ports):
            self._add_port(number)

    def _add_port(self, number: int) -> None:
        port, guest = f"p{number}", f"g{number}"
        self._inside("ip", "link", "add", port, "type", "veth", "peer", "name", guest)
        self._inside("ip", "link", "set", port, "master", "br0", "up")
        self._inside("ip", "link", "set", guest, "promisc", "on", "up")
        steering = f"/sys/class/net/{port}/queues/rx-0/rps_cpus"
        self._inside("sh", "-c", f"echo {1 << first_cpu():x} >{steering}")
        arguments = f"iface={guest},blocksz=65536,framesz=2048,framecnt={FRAMES},qdisc_bypass=0"
        self.devices.append(Device("net_af_packet", arguments))

    @property
    def pid(self) -> None:
        """No process: the kernel's work is in no process's time."""

    def begin(self) -> None:
        """Nothing is counted."""

    def cycles(self, counted: Counted) -> float | None:
        """Return none: softirqs have no account of their own."""
        del counted
        return None

    def end(self) -> None:
        """Remove all."""
        subprocess.run(["ip", "netns", "del", self._netns], check=False, capture_output=True)  # noqa: S607  any ip

    def _inside(self, *command: str) -> None:
        _run(*self.inside, *command)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
