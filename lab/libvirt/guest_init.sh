#!/bin/busybox sh
# Init of a QEMU router: takes its addresses from the kernel's command line and forwards.
# 10.N.0.0/24 is on eth0, 10.N.1.0/24 on eth1; FAR is the MAC address of 10.N.1.99.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "/lib/$module" || echo "no $module"; done < /lib/order
for word in $(cat /proc/cmdline); do
    case $word in router.*) eval "${word#router.}" ;; esac
done
tries=50
until [ -e /sys/class/net/eth1 ] || [ "$tries" -eq 0 ]; do
    tries=$((tries - 1))
    sleep 0.1
done
echo 1 > /proc/sys/net/ipv4/ip_forward
for side in 0 1; do
    ip addr add "10.$N.$side.2/24" dev "eth$side"
    ip link set "eth$side" up
done
arp -s "10.$N.1.99" "$FAR"
echo "ready after $(cut -d' ' -f1 /proc/uptime) s"
while :; do sleep 3600; done
