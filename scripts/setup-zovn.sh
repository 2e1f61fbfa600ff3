#!/bin/sh
# Builds the compiled core of zovn; as root it first installs missing Debian packages.
# If it may not or cannot, it reports what is missing and exits with 0: the rest works without it.
set -eu
cd "$(dirname "$0")/.."
PACKAGES="gcc libc6-dev make"
# What the program needs besides; the library does without.
SESSIONS="pkg-config libdpdk-dev"

say() { echo "setup-zovn: $*" >&2; }

give_up() {
    say "$*; zovn's compiled core is not built, and what needs it cannot run"
    exit 0
}

compiles() {
    command -v make >/dev/null && command -v "${CC:-cc}" >/dev/null &&
        echo '#include <stdint.h>
int main(void) { return 0; }' | "${CC:-cc}" -x c -o /dev/null - 2>/dev/null
}

# Without recommended packages: no service of this machine is set up or started.
install_packages() {
    say "installing $1"
    apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null || say "apt's lists are as old as they are"
    # shellcheck disable=SC2086  # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
        install -y --no-install-recommends $1 >/dev/null
}

has_dpdk() {
    command -v pkg-config >/dev/null && pkg-config --exists libdpdk
}

# Guests need DPDK's librte_vhost; without it there is the library, but no zovn-switch.
prepare_sessions() {
    has_dpdk && return
    if command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ]; then
        install_packages "$SESSIONS" && return
    fi
    say "one of these is missing: $SESSIONS; zovn-switch is not built, and its tests are skipped"
}

if ! compiles; then
    command -v apt-get >/dev/null || give_up "no compiler or make"
    [ "$(id -u)" -eq 0 ] || give_up "not root, and one of these is missing: $PACKAGES"
    install_packages "$PACKAGES" || give_up "apt could not install $PACKAGES"
fi
prepare_sessions
# A mistake in the core must fail, not skip.
for part in zovn/core zovn/core/simulate; do
    MAKEFLAGS='' make -s -C "$part"  # independent of a calling make's jobs
done
say "ready"
