"""Runs uv with the package index that pip is configured to use: uv reads no configuration of pip.

`python -m scripts.uv_like_pip UV ARGUMENT...`. What is set for uv itself takes precedence.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

SECTIONS: Final = ("global", "install", ":env:")
"""Of pip's configuration; a later one overrides an earlier one."""
NAMES: Final = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
}
"""uv's environment variable for each setting of pip."""
TRUE: Final = ("y", "yes", "t", "true", "on", "1")


def settings(listed: str) -> dict[str, str]:
    """Return pip's settings by name, from what `pip config list` prints."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.partition(".")
        if section in found:
            found[section][name] = str(ast.literal_eval(value))
    return {name: value for section in SECTIONS for name, value in found[section].items()}


def environment(pips: dict[str, str]) -> dict[str, str]:
    """Return the variables that give uv these settings of pip."""
    values = {name: pips[name].split() for name in NAMES if pips.get(name)}
    if "find-links" in values:
        values["find-links"] = [",".join(_that_exist(values["find-links"]))]
    result = {NAMES[name]: " ".join(words) for name, words in values.items()}
    if "extra-index-url" in values:
        # As pip does: any index may have the file that a hash names.
        result["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in result.items() if value}


def _that_exist(links: Iterable[str]) -> list[str]:
    """Return the links without folders that are missing: pip skips these, uv refuses them."""
    return [link for link in links if "://" in link or Path(link).exists()]


def arguments(pips: dict[str, str]) -> list[str]:
    """Return the arguments that uv needs where it has no variable."""
    return ["--no-index"] if pips.get("no-index", "").lower() in TRUE else []


def main(*command: str) -> None:
    """Become uv."""
    ask = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    listed = subprocess.run(ask, check=True, capture_output=True, text=True).stdout  # noqa: S603
    pips = settings(listed)
    os.execvpe(  # noqa: S606
        command[0], [*command, *arguments(pips)], environment(pips) | os.environ
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
