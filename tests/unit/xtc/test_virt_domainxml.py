"""Domain XML as libvirt 9.0 gives it: interfaces, vCPUs, what is not counted, what is broken."""

import pytest

from xtc.errors import Transient
from xtc.libvirt.domain_xml import Description, parse_domain

VCPU = "<vcpu placement='static'>2</vcpu>"


def domain(*devices: str, vcpu: str = VCPU) -> str:
    return (
        "<domain type='kvm' id='6'><name>gold</name>"
        "<uuid>c7a5fdbd-edaf-9455-926a-d65c16db1809</uuid>"
        f"<metadata/><memory unit='KiB'>262144</memory>{vcpu}"
        f"<devices><disk type='file'><target dev='vda' bus='virtio'/></disk>{''.join(devices)}"
        "</devices></domain>"
    )


QEMU_NIC = (
    "<interface type='bridge'><mac address='52:54:00:00:00:01'/><source bridge='br101.0'/>"
    "<target dev='vnet6'/><model type='virtio'/><alias name='net0'/>"
    "<address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></interface>"
)
LXC_NIC = (
    "<interface type='bridge'><mac address='00:16:3e:00:00:01'/><source bridge='br102.0'/>"
    "<target dev='vnet8'/><guest dev='eth0'/></interface>"
)
XEN_NIC = (
    "<interface type='bridge'><mac address='00:16:3e:00:00:02'/><source bridge='br0'/>"
    "<target dev='vif1.0'/></interface>"
)
XEN_PLUGGED = (
    "<interface type='bridge'><mac address='00:16:3e:00:00:03'/><source bridge='br0'/></interface>"
)
XEN_CONSOLE = "<console type='pty'><target type='xen' port='0'/></console>"
HOSTDEV = (
    "<interface type='hostdev' managed='yes'><mac address='52:54:00:00:00:09'/>"
    "<source><address type='pci' bus='0x03'/></source></interface>"
)
MACVTAP = "<interface type='direct'><source dev='eth0'/><target dev='macvtap0'/></interface>"
VHOSTUSER = (
    "<interface type='vhostuser'><source type='unix' path='/run/vhost.sock' mode='server'/>"
    "<target dev='vhost-user1'/></interface>"
)


@pytest.mark.parametrize(
    ("driver", "devices", "interfaces", "uncounted"),
    [
        ("QEMU", [QEMU_NIC], ("vnet6",), ()),
        ("QEMU", [QEMU_NIC, QEMU_NIC.replace("vnet6", "vnet7")], ("vnet6", "vnet7"), ()),
        ("QEMU", [QEMU_NIC, QEMU_NIC], ("vnet6",), ()),
        ("LXC", [LXC_NIC], ("vnet8",), ()),
        ("Xen", [XEN_NIC, XEN_CONSOLE], ("vif1.0",), ()),
        ("Xen", [XEN_NIC, XEN_PLUGGED], ("vif1.0",), ()),
        ("QEMU", [XEN_PLUGGED], (), ("bridge",)),
        ("QEMU", [QEMU_NIC, HOSTDEV], ("vnet6",), ("hostdev",)),
        ("Xen", [HOSTDEV], (), ("hostdev",)),
        ("QEMU", [MACVTAP], ("macvtap0",), ()),
        ("QEMU", [VHOSTUSER], (), ("vhostuser",)),
        ("QEMU", ["<interface type='user'/>"], (), ("user",)),
        ("QEMU", ["<interface/>"], (), ("?",)),
        (
            "QEMU",
            ["<interface type='ethernet'><target dev='a b/c'/></interface>"],
            (),
            ("ethernet",),
        ),
        ("QEMU", ["<interface type='ethernet'><target dev=''/></interface>"], (), ("ethernet",)),
        ("QEMU", [], (), ()),
    ],
)
def test_interfaces(
    driver: str, devices: list[str], interfaces: tuple[str, ...], uncounted: tuple[str, ...]
) -> None:
    found = parse_domain(domain(*devices), name="gold", driver=driver)
    assert found == Description(2, interfaces, uncounted)


@pytest.mark.parametrize(
    ("vcpu", "expected"),
    [
        ("<vcpu>4</vcpu>", 4),
        ("<vcpu placement='static' current='3'>8</vcpu>", 3),
        ("<vcpu/>", 1),
        ("<vcpu>0</vcpu>", 1),
        ("", 1),
    ],
)
def test_vcpus_are_those_in_use(vcpu: str, expected: int) -> None:
    assert parse_domain(domain(vcpu=vcpu), name="gold", driver="QEMU").vcpus == expected


@pytest.mark.parametrize(
    "broken", ["", "gold", "<domain>", "<domain></dom>", domain(vcpu="<vcpu>two</vcpu>"), "\x00"]
)
def test_what_cannot_be_read_is_worth_another_try(broken: str) -> None:
    with pytest.raises(Transient, match="gold: its XML cannot be read"):
        parse_domain(broken, name="gold", driver="QEMU")
