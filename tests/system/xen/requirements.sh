#!/bin/sh
# Installs what the Xen test needs of a Debian host, as far as it is missing; needs root.
set -eu

# seabios: without recommended packages, qemu comes without firmware.
needed="qemu-system-x86 seabios debootstrap cpio e2fsprogs kmod gcc libc6-dev"

missing=""
for package in $needed; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "the Xen test needs root, and:$missing" >&2
    exit 1
fi
echo "installing:$missing" >&2
apt-get -qq update
# shellcheck disable=SC2086  # a list of words
DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing >/dev/null
