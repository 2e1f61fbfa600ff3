#!/bin/sh
# Builds dist/xtc-policer_VERSION_ARCH.deb: the policer, and the libraries that the xtc package lacks.
set -eu
umask 022
cd "$(dirname "$0")/../.."
SOURCE=deploy/debian
WORK=build/deb-policer
ROOT=$WORK/root
LIB=$ROOT/usr/lib/xtc-policer
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(dpkg-parsechangelog -l $SOURCE/changelog -S Timestamp)}"

BIN=.venv/bin
VERSION=$($BIN/python -c 'import xtc; print(xtc.__version__)')
ARCH=$(dpkg --print-architecture)
MINOR=$(/usr/bin/python3 -c 'import sys; print(sys.version_info.minor)')
DEB=dist/xtc-policer_${VERSION}_$ARCH.deb

# One build at a time.
mkdir -p build && exec 9>build/deb-policer.lock && flock 9

# 1. The policer and its libraries: exactly those of the lock file, for the system's Python.
rm -rf "$ROOT" && mkdir -p "$LIB" dist
$BIN/python -m deploy.locked requirements.lock policer postgresql oidc >$WORK/requirements.txt
pip() { $BIN/python -m pip --disable-pip-version-check --quiet "$@"; }
pip wheel --no-deps --no-build-isolation --wheel-dir $WORK .
# Without dependencies: the xtc package has some of them already.
pip install --target "$LIB/python" --python-version "3.$MINOR" --only-binary :all: --no-compile \
    --no-deps --require-hashes --requirement $WORK/requirements.txt
$BIN/python -m zipfile -e "$WORK/xtc-$VERSION-py3-none-any.whl" $WORK/wheel
cp -R $WORK/wheel/policer "$LIB/python/policer"
rm -rf "$LIB/python/bin" $WORK/wheel
find "$LIB/python" -name '*.so*' ! -path '*.libs/*' -exec strip --strip-unneeded {} +
find "$LIB/python" '(' -type d -exec chmod 755 {} + ')' -o '(' -type f -exec chmod 644 {} + ')'

# 2. Program, unit file, the starting settings.
install -D -m 755 $SOURCE/policer/policer "$ROOT/usr/bin/policer"
install -D -m 644 -t "$ROOT/lib/systemd/system" deploy/systemd/xtc-policer.service
install -D -m 644 -t "$ROOT/etc/xtc" deploy/etc/policer.toml

# 3. Documents, alert rules, dashboard, and completion, which the program generates.
$BIN/python -m deploy.manpages $WORK/man
for page in policer.8 policer.toml.5; do
    install -D -m 644 "$WORK/man/$page" "$ROOT/usr/share/man/man${page##*.}/$page"
    gzip -9n "$ROOT/usr/share/man/man${page##*.}/$page"
done
complete() { # SHELL FILE
    mkdir -p "$ROOT/usr/share/$(dirname "$2")"
    _POLICER_COMPLETE="source_$1" $BIN/python -c \
        'import sys; sys.argv = ["policer"]; from policer.cli.main import main; main()' >"$ROOT/usr/share/$2"
}
complete bash bash-completion/completions/policer
complete zsh zsh/vendor-completions/_policer
complete fish fish/vendor_completions.d/policer.fish
DOC=$ROOT/usr/share/doc/xtc-policer
install -D -m 644 -t "$DOC" $SOURCE/copyright
install -D -m 644 -t "$DOC/examples" deploy/prometheus/policer.yml deploy/prometheus/xtc.yml \
    deploy/grafana/*.json
gzip -9nc $SOURCE/changelog >"$DOC/changelog.gz"
install -D -m 644 $SOURCE/policer/lintian-overrides "$ROOT/usr/share/lintian/overrides/xtc-policer"

# 4. Metadata for dpkg.
CONTROL=$ROOT/DEBIAN
install -D -m 755 -t "$CONTROL" $SOURCE/policer/postinst $SOURCE/policer/prerm $SOURCE/policer/postrm
echo /etc/xtc/policer.toml >"$CONTROL/conffiles"
(cd "$ROOT" && find usr lib -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$CONTROL/md5sums"
mkdir -p $WORK/debian && echo 'Source: xtc' >$WORK/debian/control
# Libraries bundled in a wheel (NAME.libs) need no system package.
SHLIBS=$(cd $WORK && find root/usr/lib/xtc-policer/python -name '*.so*' -print0 |
    xargs -0 dpkg-shlibdeps -O --warnings=0 --ignore-missing-info | sed 's/^shlibs:Depends=//')
sed -e "s/@VERSION@/$VERSION/g; s/@ARCH@/$ARCH/; s/@SHLIBS@/$SHLIBS/" \
    -e "s/@PYTHON@/3.$MINOR/; s/@NEXT@/3.$((MINOR + 1))/" \
    -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$ROOT" | cut -f1)/" \
    $SOURCE/policer/control.in >"$CONTROL/control"
dpkg-deb --root-owner-group -Zxz -z1 --build "$ROOT" "$DEB" >/dev/null
echo "$DEB"
