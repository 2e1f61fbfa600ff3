"""A domain of libvirt with the elements that docs/howto/zovn.md has for a port."""

import re
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from system.guests.machine import MEMORY_MIB, System, words

HOWTO: Final = Path(__file__).parents[3] / "docs/howto/zovn.md"
SCHEMA: Final = "http://libvirt.org/schemas/domain/qemu/1.0"


def documented(element: str) -> str:
    """Return the element of this name in the how-to."""
    found = re.search(rf"(?ms)^<{element}[ >].*?^</{element}>$", HOWTO.read_text())
    assert found is not None, element
    return found[0]


def domain(system: System, socket: str, address: str, partition: str, console: Path) -> str:
    """Return the XML of an emulated guest on a port; its console is a file."""
    interface = documented("interface").replace("'/run/zovn/vm1.sock'", quoteattr(socket))
    assert socket in interface
    interface = interface.replace("</interface>", "<alias name='ua-port'/></interface>")
    return f"""\
<domain type='qemu' xmlns:qemu='{SCHEMA}'>
  <name>guest</name>
  <memory unit='MiB'>{MEMORY_MIB}</memory>
  <vcpu>1</vcpu>
  {documented("memoryBacking")}
  <resource><partition>/{escape(partition)}</partition></resource>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>{escape(str(system.kernel))}</kernel>
    <initrd>{escape(str(system.initrd))}</initrd>
    <cmdline>{escape(words(address))}</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='maximum'/>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    {interface}
    <serial type='file'><source path={quoteattr(str(console))}/></serial>
    <memballoon model='none'/>
  </devices>
  {documented("qemu:override")}
</domain>
"""
