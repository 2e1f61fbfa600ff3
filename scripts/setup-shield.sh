#!/bin/sh
# Builds the BPF program of the shield; as root it first installs missing Debian packages.
# If it may not or cannot, it reports what is missing and exits with 0: then routers have no shield,
# and limits are TBFs.
set -eu
cd "$(dirname "$0")/.."
PACKAGES="clang libbpf-dev libc6-dev make"

say() { echo "setup-shield: $*" >&2; }

give_up() {
    say "$*; without it routers have no shields, and limits are TBFs"
    exit 0
}

# Whether a BPF program can be compiled here and loaded by libbpf, regardless of packages.
compiles() {
    command -v make >/dev/null && command -v "${CLANG:-clang}" >/dev/null &&
        printf '#include <linux/types.h>\n#include <bpf/bpf_helpers.h>\n' |
        "${CLANG:-clang}" -target bpf -I"/usr/include/$(uname -m)-linux-gnu" -x c -c -o /dev/null - \
            2>/dev/null
}

install_packages() {
    say "installing $PACKAGES"
    apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null || say "apt's lists are not updated"
    # shellcheck disable=SC2086  # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
        install -y --no-install-recommends $PACKAGES >/dev/null
}

if ! compiles; then
    command -v apt-get >/dev/null || give_up "no clang or no libbpf headers"
    [ "$(id -u)" -eq 0 ] || give_up "not root, and one of these is missing: $PACKAGES"
    install_packages || give_up "apt could not install $PACKAGES"
fi
MAKEFLAGS='' make -s -C xtc/shield  # independent of a calling make's jobs
say "ready"
