#!/bin/sh
# Makes the policer's tests on PostgreSQL and in a browser possible on Debian: installs both.
# Where it may not or cannot, it says what is missing and ends well: those tests are then skipped.
set -eu
CLUSTERS=/etc/postgresql-common/createcluster.d

say() { echo "setup-policer: $*" >&2; }

missing=
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="postgresql"
command -v chromium >/dev/null || missing="$missing chromium"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    say "missing: $missing (Debian: apt install $missing); tests with it will be skipped"
    exit 0
fi

# No server of this machine's own is set up: the tests start one in a folder of theirs.
mkdir -p "$CLUSTERS"
[ -e "$CLUSTERS/no-main.conf" ] || echo "create_main_cluster = false" >"$CLUSTERS/no-main.conf"

say "installing $missing"
apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null || say "apt's lists are as old as they are"
# shellcheck disable=SC2086  # a list of words
DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends $missing >/dev/null ||
    say "could not install $missing; tests with it will be skipped"
