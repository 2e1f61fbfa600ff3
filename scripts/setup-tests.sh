#!/bin/sh
# Installs the Debian packages of programs that tests use: PostgreSQL, Chromium, lintian, promtool,
# iperf3, testpmd (DPDK), bird, trafgen (netsniff-ng), ping, SNMP's agent and client, lldpd,
# Open vSwitch, ethtool.
# If it may not or cannot, it reports what is missing and exits with 0: the tests are then skipped.
set -eu
CLUSTERS=/etc/postgresql-common/createcluster.d
POLICY=/usr/sbin/policy-rc.d

PATH=$PATH:/usr/sbin # bird, trafgen, ovs-vswitchd and others are there; not every user's path has it

say() { echo "setup-tests: $*" >&2; }

missing=
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="postgresql"
command -v chromium >/dev/null || missing="$missing chromium"
command -v lintian >/dev/null || missing="$missing lintian"
command -v promtool >/dev/null || missing="$missing prometheus"
command -v iperf3 >/dev/null || missing="$missing iperf3"
command -v dpdk-testpmd >/dev/null || missing="$missing dpdk-dev"
command -v bird >/dev/null || missing="$missing bird2"
command -v trafgen >/dev/null || missing="$missing netsniff-ng"
command -v ping >/dev/null || missing="$missing iputils-ping"
command -v snmpbulkwalk >/dev/null || missing="$missing snmp"
command -v snmpd >/dev/null || missing="$missing snmpd"
command -v lldpd >/dev/null || missing="$missing lldpd"
command -v ovs-vswitchd >/dev/null || missing="$missing openvswitch-switch"
command -v ethtool >/dev/null || missing="$missing ethtool"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    say "missing: $missing (Debian: apt install $missing); tests with it will be skipped"
    exit 0
fi

# No service of this machine is set up or started: the tests start their own servers.
mkdir -p "$CLUSTERS"
[ -e "$CLUSTERS/no-main.conf" ] || echo "create_main_cluster = false" >"$CLUSTERS/no-main.conf"
if [ ! -e "$POLICY" ]; then
    trap 'rm -f "$POLICY"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$POLICY" && chmod +x "$POLICY"
fi

say "installing $missing"
apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null || say "apt's lists are not updated"
# shellcheck disable=SC2086  # a list of words
DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends $missing >/dev/null ||
    say "could not install $missing; tests with it will be skipped"
# These packages enable a service for the next boot; the tests start their programs themselves.
disable() {
    ! command -v systemctl >/dev/null || systemctl --quiet disable "$1" >/dev/null 2>&1 ||
        say "could not disable the service $1"
}
for package in $missing; do
    case "$package" in
    prometheus) disable prometheus ;;
    bird2) disable bird ;;
    snmpd | lldpd | openvswitch-switch) disable "$package" ;;
    esac
done
