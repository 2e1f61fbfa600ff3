#!/bin/sh
# Installs the packages in a private Debian 12, uses, removes and purges them. As root; 2 min.
set -eu
cd "$(dirname "$0")/../.."
DEB=$(readlink -f "${1:-$(ls dist/xtc_*.deb)}")
POLICER=$(readlink -f "${2:-$(ls dist/xtc-policer_*.deb)}")
XCO=$(readlink -f "${3:-$(ls dist/xco_*.deb)}")
ZOVN=$(readlink -f "${4:-$(ls dist/zovn_*.deb)}")
BASE=$PWD/build/debian

if [ ! -d "$BASE" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)
    debootstrap --variant=minbase --include=man-db,bash-completion bookworm "$BASE.new" "$mirror"
    mv "$BASE.new" "$BASE"
fi

# The mounts end with this namespace; the installation is in memory.
export DEB POLICER XCO ZOVN BASE
exec unshare --mount sh -eu <<'INSIDE'
mount -t tmpfs none /mnt
mkdir /mnt/up /mnt/work /mnt/system
mount -t overlay -o "lowerdir=$BASE,upperdir=/mnt/up,workdir=/mnt/work" none /mnt/system
mount -t proc proc /mnt/system/proc
cp /etc/resolv.conf /mnt/system/etc/
cp "$DEB" /mnt/system/xtc.deb
cp "$POLICER" /mnt/system/policer.deb
cp "$XCO" /mnt/system/xco.deb
cp "$ZOVN" /mnt/system/zovn.deb
in_it() { chroot /mnt/system env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
apt_get() { in_it env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -y "$@"; }
say() { echo "== $*"; }

say "install"
apt_get update
apt_get install --no-install-recommends /xtc.deb python3-libvirt >/dev/null
in_it xtc --version
in_it xtc config check
in_it python3 -I -c 'import sys; sys.path.insert(0, "/usr/lib/xtc/python"); import libvirt; print("libvirt-python", libvirt.getVersion())'
in_it xtc release --all
in_it man xtc | grep -q 'xtc activate'
in_it man xtc.toml | grep -q period_s
in_it bash -ic '. /usr/share/bash-completion/bash_completion; _completion_loader xtc;
    COMP_WORDS=(xtc rel) COMP_CWORD=1; _xtc_completion xtc; test "${COMPREPLY[0]}" = release' 2>/dev/null
test ! -e /mnt/system/etc/systemd/system/multi-user.target.wants/xtc.service

say "the policer: install, and use it as its own user"
apt_get install --no-install-recommends /policer.deb >/dev/null
as_policer() { in_it setpriv --reuid xtc-policer --regid xtc-policer --clear-groups "$@"; }
in_it policer --version
in_it policer config check
test "$(in_it stat -c %U:%a /var/lib/xtc-policer)" = xtc-policer:700
if in_it policer db upgrade 2>/dev/null; then echo "root made the database"; exit 1; fi
as_policer policer db upgrade
token=$(as_policer policer token add try --scope admin 2>/dev/null)
# Not through the function, or $! would be that of a shell.
chroot /mnt/system setpriv --reuid xtc-policer --regid xtc-policer --clear-groups \
    env -i HOME=/nonexistent PATH=/usr/bin:/bin LC_ALL=C.UTF-8 policer serve 2>/mnt/policer.log &
serving=$!
ask() { in_it env POLICER_TOKEN="$token" policer "$@"; }
tries=0
until ask host list 2>/dev/null; do
    tries=$((tries + 1))
    test $tries -lt 40 || { cat /mnt/policer.log; kill $serving; exit 1; }
    sleep 0.5
done
ask host add here --requests ipc:///run/xtc/manager.sock --telemetry ipc:///run/xtc/telemetry.sock --capacity 100kpps
ask contract set here gold --guarantee 20kpps
ask contract list
kill $serving && wait $serving
in_it man policer | grep -q 'policer contract set'
in_it bash -ic '. /usr/share/bash-completion/bash_completion; _completion_loader policer;
    COMP_WORDS=(policer cont) COMP_CWORD=1; _policer_completion policer; test "${COMPREPLY[0]}" = contract' 2>/dev/null
test ! -e /mnt/system/etc/systemd/system/multi-user.target.wants/xtc-policer.service

say "the policer: remove, then purge"
apt_get remove xtc-policer >/dev/null
test -e /mnt/system/etc/xtc/policer.toml
test -e /mnt/system/var/lib/xtc-policer/policer.db
test ! -e /mnt/system/usr/lib/xtc-policer
apt_get purge xtc-policer >/dev/null
test ! -e /mnt/system/var/lib/xtc-policer

say "xco: install, look, remove, purge"
apt_get install --no-install-recommends /xco.deb >/dev/null
in_it xco --version
in_it man xco | grep -q 'xco coordinator release'
in_it man xco.toml | grep -q hysteresis
in_it bash -ic '. /usr/share/bash-completion/bash_completion; _completion_loader xco;
    COMP_WORDS=(xco coo) COMP_CWORD=1; _xco_completion xco; test "${COMPREPLY[0]}" = coordinator' 2>/dev/null
if in_it xco coordinator check 2>/dev/null; then echo "a coordinator without settings"; exit 1; fi
test ! -e /mnt/system/etc/systemd/system/multi-user.target.wants/xco-coordinator.service
apt_get remove xco >/dev/null
test -e /mnt/system/etc/xtc/xco.toml
test ! -e /mnt/system/usr/lib/xco
apt_get purge xco >/dev/null
test ! -e /mnt/system/etc/xtc/xco.toml

say "zovn: install, look, remove, purge"
apt_get install --no-install-recommends /zovn.deb >/dev/null
in_it zovn --version
in_it zovn switch check
in_it zovn simulate --quick --mode ZZ
in_it man zovn | grep -q 'zovn switch top'
in_it man zovn.toml | grep -q limit_bytes
in_it bash -ic '. /usr/share/bash-completion/bash_completion; _completion_loader zovn;
    COMP_WORDS=(zovn exp) COMP_CWORD=1; _zovn_completion zovn; test "${COMPREPLY[0]}" = exporter' 2>/dev/null
test ! -e /mnt/system/etc/systemd/system/multi-user.target.wants/zovn-switch.service
apt_get remove zovn >/dev/null
test -e /mnt/system/etc/xtc/zovn.toml
test ! -e /mnt/system/usr/lib/zovn
apt_get purge zovn >/dev/null
test ! -e /mnt/system/etc/xtc/zovn.toml

say "upgrade to the same, with a changed configuration"
echo '# changed' >>/mnt/system/etc/xtc/xtc.toml
in_it dpkg -i /xtc.deb >/dev/null
tail -n 1 /mnt/system/etc/xtc/xtc.toml

say "remove: the configuration stays, nothing else"
apt_get remove xtc >/dev/null
test -e /mnt/system/etc/xtc/xtc.toml
test ! -e /mnt/system/usr/lib/xtc
test ! -e /mnt/system/usr/bin/xtc

say "purge: nothing stays"
apt_get purge xtc >/dev/null
left=$(cd /mnt/system && find etc usr lib var run \( -name 'xtc*' -o -path '*/xtc/*' \) \
    ! -path 'var/cache/man/*' ! -path 'var/lib/apt/*')
test -z "$left" || { echo "left: $left"; exit 1; }
say "done"
INSIDE
