#!/bin/busybox sh
# All that runs on a kernel with fq: coordinates a host whose gates are times of departure, sends
# through it with iperf3, and switches the machine off. Lines that begin with [xtc] are results.
/bin/busybox mkdir -p /bin /proc /sys /dev /run /tmp
/bin/busybox --install -s /bin
export PATH=/programs:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run

# busybox would run its own ip and tc
ip() {
    /programs/ip "$@"
}

tc() {
    /programs/tc "$@"
}

say() {
    echo "[xtc] $*"
}

received() {
    ip netns exec far cat /sys/class/net/e0/statistics/rx_bytes
}

# Has iperf3 send for six seconds, and says what arrived in four of them, in bits/s.
measure() {
    name=$1
    shift
    iperf3 -c 10.77.0.100 -t 6 "$@" > /tmp/iperf3 2>&1 &
    sleep 1.5
    bytes=$(received) since=$(cut -d " " -f 1 /proc/uptime)
    sleep 4
    bytes=$(($(received) - bytes)) until=$(cut -d " " -f 1 /proc/uptime)
    wait $! || cat /tmp/iperf3
    say "$name: $(echo "$bytes $since $until" | awk '{ printf "%.0f", $1 * 8 / ($3 - $2) }')"
}

# Waits until the coordinator has said something.
said() {
    for _ in $(seq 100); do
        grep -q "$1" /tmp/coordinator && return
        sleep 0.1
    done
    say "not said: $1"
    cat /tmp/coordinator
}

say "Linux $(uname -r)"
modprobe -a veth sch_fq sch_ingress cls_bpf
ip link set lo up
mkdir -p /run/netns /var/lib/xco
ip netns add far
ip link add e0 numtxqueues "$QUEUES" type veth peer name e0 netns far
ip address add 10.77.0.1/24 dev e0
ip link set e0 up
ip -n far address add 10.77.0.100/24 dev e0
ip -n far address add 10.77.0.250/24 dev e0
ip -n far link set e0 up
ip -n far link set lo up
ip netns exec far iperf3 -s -D
sleep 1
measure without -u -b 30M -l 1400
xco-coordinator /coordinator.conf 2> /tmp/coordinator &
coordinator=$!
said "gates stand"
say "root: $(tc qdisc show dev e0 root | head -1)"
say "queues: $(tc qdisc show dev e0 | grep -c 'qdisc fq')"
measure safe-udp -u -b 30M -l 1400
measure safe-tcp
for strategy in rate timeslice; do
    /programs/ip netns exec far xco-controller "/$strategy.loop" &
    controller=$!
    sleep 2
    measure "$strategy-udp" -u -b 30M -l 1400
    measure "$strategy-tcp"
    kill "$controller"
    wait "$controller"
    sleep 1
done
said "grants timeslices"
kill "$coordinator"
wait "$coordinator"
say "after: $(tc qdisc show dev e0 root | head -1)"
cat /tmp/coordinator
say done
poweroff -f
