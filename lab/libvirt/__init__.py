"""Real virtual routers under a private libvirtd: LXC containers and QEMU machines."""
