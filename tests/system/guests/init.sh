#!/bin/busybox sh
# All that runs in a guest: runs each line that comes by the console, and says how it ended.
/bin/busybox mkdir -p /bin /proc /sys /dev /run /tmp
/bin/busybox --install -s /bin
export PATH=/programs:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
modprobe -a virtio_pci virtio_net
stty -echo
ip link set lo up
# shellcheck disable=SC2154  # a word of the kernel's command line
ip address add "$address/24" dev eth0
ip link set eth0 up
echo "[xtc] ready"
while read -r line; do
    eval "$line"
    echo "[xtc] end $?"
done
