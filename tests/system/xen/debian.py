"""Debian's packages of the release that this host runs, from the mirror that its apt uses."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a program and return what it printed.

    Raises:
        RuntimeError: it failed; with its last words.
    """
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=os.environ | {"PATH": PATH, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        words = (done.stdout + done.stderr)[-2000:]
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{words}")
    return done.stdout


def release() -> str:
    """Return the code name of this host's release, such as bookworm."""
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def dependency(package: str, pattern: str) -> str:
    """Return what a package depends on that matches: meta-packages name versions."""
    found = re.search(rf"Depends: ({pattern})\s", run("apt-cache", "depends", package))
    if found is None:
        raise RuntimeError(f"{package} depends on nothing like {pattern}: run apt-get update")
    return found[1]


def unpack(packages: Sequence[str], into: Path) -> None:
    """Download packages and unpack them; nothing is installed on this host."""
    downloads = into / ".downloads"
    downloads.mkdir(parents=True)
    run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *packages, cwd=downloads)
    for package in downloads.glob("*.deb"):
        run("dpkg-deb", "-x", package, into)
    shutil.rmtree(downloads)


def bootstrap(into: Path, packages: Sequence[str]) -> None:
    """Make a root file system, in a mount namespace so that its mounts never outlive it."""
    run(
        *("unshare", "--mount", "--propagation", "private"),
        *("debootstrap", "--variant=minbase", f"--include={','.join(packages)}"),
        *(release(), into, _mirror()),
    )
    for waste in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man"):
        shutil.rmtree(into / waste)


def _mirror() -> str:
    targets = run("apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Origin: Debian")
    for line in targets.splitlines():
        name, _, mirror = line.partition(" ")
        if name == release():
            return mirror
    raise RuntimeError(f"apt has no lists of {release()}: run apt-get update")
