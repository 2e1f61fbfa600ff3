#!/bin/sh
# Init of an LXC router: 'forward' becomes the forwarder, 'kernel' lets the host's kernel forward.
# Arguments: KIND N ROUTER0 NEXT0 ROUTER1 NEXT1 (MAC addresses of the router and its next hops).
set -eu
kind=$1 n=$2 next1=$6
ip link set lo up
if [ "$kind" = kernel ]; then
    for side in 0 1; do ip addr add "10.$n.$side.2/24" dev "eth$side"; done
    echo 1 > /proc/sys/net/ipv4/ip_forward
fi
ip link set eth0 up
ip link set eth1 up
if [ "$kind" = kernel ]; then
    arp -s "10.$n.1.99" "$next1"
    while :; do sleep 3600; done
fi
exec /bin/forward eth0 "$3" "$4" eth1 "$5" "$6"
