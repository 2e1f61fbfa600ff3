"""Tells snmpd of the bridge br0 of its namespace: BRIDGE-MIB by `pass_persist` (snmpd.conf(5))."""

import json
import subprocess
import sys

STATES = {"disabled": 1, "blocking": 2, "listening": 3, "learning": 4, "forwarding": 5}
PORT_INTERFACE = (1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 2)
PORT_STATE = (1, 3, 6, 1, 2, 1, 17, 2, 15, 1, 3)
Oid = tuple[int, ...]


def cells() -> dict[Oid, int]:
    """Return the value of each object that there is, in their order."""
    said = subprocess.run(["bridge", "-j", "link"], capture_output=True, check=True, text=True)
    ports = [port for port in json.loads(said.stdout or "[]") if port.get("master") == "br0"]
    found = {(*PORT_INTERFACE, number): int(port["ifindex"]) for number, port in enumerate(ports)}
    found |= {(*PORT_STATE, number): STATES[port["state"]] for number, port in enumerate(ports)}
    return dict(sorted(found.items()))


def answer(asked: Oid, *, is_next: bool) -> str:
    """Return an object, its type and its value, or NONE."""
    for oid, value in cells().items():
        if oid > asked if is_next else oid == asked:
            return f".{'.'.join(map(str, oid))}\ninteger\n{value}"
    return "NONE"


def say(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Answer until snmpd ends."""
    for line in sys.stdin:
        word = line.strip()
        if word == "PING":
            say("PONG")
        elif word in {"get", "getnext"}:
            oid = tuple(map(int, sys.stdin.readline().strip().strip(".").split(".")))
            say(answer(oid, is_next=word == "getnext"))


if __name__ == "__main__":
    main()
