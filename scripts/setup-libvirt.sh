#!/bin/sh
# Installs the requirements of libvirt's tests on Debian: packages, guests, libvirt-python in .venv.
# If it may not or cannot, it reports what is missing and exits with 0: the tests are then skipped.
set -eu
cd "$(dirname "$0")/.."
PYTHON=.venv/bin/python
LOCK=requirements-libvirt.lock
KERNEL=linux-image-cloud-amd64
PACKAGES="libvirt-daemon libvirt-daemon-driver-qemu libvirt-daemon-driver-lxc libvirt-clients
    libvirt-dev qemu-system-x86 seabios busybox-static pkg-config gcc libc6-dev python3-dev
    cpio binutils lz4 zstd kmod"

say() { echo "setup-libvirt: $*" >&2; }

give_up() {
    say "$*; the tests with libvirt will be skipped"
    exit 0
}

# The packages that are not installed, on one line.
missing_packages() {
    # shellcheck disable=SC2086  # a list of words
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $PACKAGES 2>/dev/null || true)
    for package in $PACKAGES; do
        echo "$installed" | grep -qx "$package installed" || printf '%s ' "$package"
    done
}

apt() { apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >/dev/null; }

# Without recommended packages: no service of this machine is set up or started.
install_packages() {
    say "installing $*"
    apt update || say "apt's lists are as old as they are"
    DEBIAN_FRONTEND=noninteractive apt install -y --no-install-recommends "$@"
}

# Downloads the kernel's package if needed and unpacks it (without installing it), then builds.
build_guests() {
    if [ -e build/guest/kernel/vmlinux ]; then
        say "building the guests' programs"
        "$PYTHON" -m lab.libvirt.build
        return
    fi
    say "downloading the guests' kernel (27 MB)"
    (cd "$scratch" && download_kernel) &&
        dpkg-deb -x "$scratch"/linux-image-*.deb "$scratch/root" &&
        say "building the guests' parts" &&
        "$PYTHON" -m lab.libvirt.build --kernel "$scratch/root"
}

download_kernel() {
    name=$(apt-cache depends "$KERNEL" | sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)
    [ -n "$name" ] && apt download "$name" -o APT::Sandbox::User=root
}

# setuptools first: libvirt-python is built only with the locked version.
install_libvirt_python() {
    say "building libvirt-python"
    sed -n '/^setuptools/,$p' "$LOCK" >"$scratch/tools.lock"
    pip --only-binary :all: -r "$scratch/tools.lock" && pip --no-build-isolation -r "$LOCK"
}

pip() {
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps "$@"
}

libvirt_python_fits() {
    "$PYTHON" - "$LOCK" <<'END'
import re, sys
from importlib.metadata import PackageNotFoundError, version
wanted = re.search(r"^libvirt-python==(\S+)", open(sys.argv[1]).read(), re.M)[1]
try:
    sys.exit(version("libvirt-python") != wanted)
except PackageNotFoundError:
    sys.exit(1)
END
}

[ -x "$PYTHON" ] || give_up "there is no .venv yet (make .venv/.ready)"
[ -e /etc/debian_version ] || give_up "this is not Debian: see docs/tutorial/lab.md for what to install"
lacking=$(missing_packages)
if [ "$(id -u)" -ne 0 ]; then
    [ -z "$lacking" ] || give_up "not root, and these packages are missing: $lacking"
    give_up "not root"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck disable=SC2086  # a list of words
[ -z "$lacking" ] || install_packages $lacking || give_up "apt could not install $lacking"
"$PYTHON" -m lab.libvirt.requirements >/dev/null || build_guests || give_up "no guests were built"
libvirt_python_fits || install_libvirt_python || give_up "libvirt-python could not be built"
say "ready"
