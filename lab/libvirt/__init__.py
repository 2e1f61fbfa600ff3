"""Real virtual routers under a libvirtd of their own: LXC containers and QEMU machines."""
