#!/bin/sh
# Bridges: in<n> leads to guest number n, which dom0 floods; out swallows what guests forward.
set -eu

sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
ip link set lo up
ip link add out address 02:00:00:00:00:02 type bridge
ip link set out up
for n in 1 2; do
    ip link add "in$n" address "02:00:00:00:01:0$n" type bridge
    ip link set "in$n" up
    # What is sent to 10.2.n.1 goes to the guest's first interface, whether it is there or not.
    ip address add "10.2.$n.254/24" dev "in$n"
    ip neighbour add "10.2.$n.1" lladdr "00:16:3e:00:0$n:00" dev "in$n" nud permanent
done
