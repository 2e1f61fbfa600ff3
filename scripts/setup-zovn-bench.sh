#!/bin/sh
# Installs what the figures of zovn compare it with: OVS-DPDK and DPDK's testpmd.
# No service is set up or started: the benchmarks start their own. `make test` needs none of it.
# If it may not or cannot, it reports what is missing and exits with 0: they are then left out.
set -eu
POLICY=/usr/sbin/policy-rc.d
PATH=$PATH:/usr/sbin

say() { echo "setup-zovn-bench: $*" >&2; }

missing=
[ -x /usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk ] || missing="openvswitch-switch-dpdk"
command -v dpdk-testpmd >/dev/null || missing="$missing dpdk-dev"
[ -n "$missing" ] || { say "ready"; exit 0; }

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    say "missing: $missing (Debian, as root: apt install $missing); it is left out"
    exit 0
fi

if [ ! -e "$POLICY" ]; then
    trap 'rm -f "$POLICY"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$POLICY" && chmod +x "$POLICY"
fi

say "installing $missing"
apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null || say "apt's lists are not updated"
# shellcheck disable=SC2086  # a list of words
DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends $missing >/dev/null || {
    say "could not install $missing; it is left out"
    exit 0
}

# They enable services for the next boot.
disable() {
    ! command -v systemctl >/dev/null || systemctl --quiet disable "$1" >/dev/null 2>&1 ||
        say "could not disable the service $1"
}
case "$missing" in
*openvswitch*)
    disable openvswitch-switch
    disable dpdk
    ;;
esac
say "ready"
