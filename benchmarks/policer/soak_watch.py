"""Watch a soaked policer from outside: probes, memory, disk, and the shown state of hosts."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from benchmarks.policer.rig import Policer
from benchmarks.policer.soak_fleet import Fleet
from benchmarks.policer.soak_judged import Sample
from benchmarks.policer.soak_load import Probes

SAMPLES_EVERY_S: Final = 5.0
PROBES_EVERY_S: Final = 1.0
READY_S: Final = 120.0
"""How long all compliant hosts may take to be controlled, at the begin and at the end, and bad
ones to be shown."""
PROBED: Final = ("/livez", "/readyz", "/v1/hosts?limit=100", "/v1/routers?limit=100", "/v1/events")


@dataclass
class Watch:
    """Observations of one run."""

    policer: Policer
    fleet: Fleet
    probes: Probes
    began: float = 0.0
    ended: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    """The policer's message on each bad host, by its fault."""

    def until_controlled(self) -> dict[str, str]:
        """Wait until every compliant host is controlled; return those that are not by the end."""
        deadline = time.monotonic() + READY_S
        while (troubled := self.troubled()) and time.monotonic() < deadline:
            time.sleep(1.0)
        return troubled

    def run(self, seconds: float) -> None:
        """Probe and sample for some time."""
        self.fleet.count()
        self.began = time.monotonic()
        turn = 0
        while (at := time.monotonic() - self.began) < seconds:
            self.probes.ask(PROBED[turn % len(PROBED)])
            if at >= len(self.samples) * SAMPLES_EVERY_S:
                self.samples.append(self._sample(at))
                self._look_at_bad_hosts()
            turn += 1
            time.sleep(max(0.0, self.began + turn * PROBES_EVERY_S - time.monotonic()))
        self._wait_until_shown()
        self.ended = time.monotonic()
        self.samples.append(self._sample(self.ended - self.began))

    def _wait_until_shown(self) -> None:
        """Look at bad hosts until each was shown: some are bad only at times."""
        deadline = time.monotonic() + READY_S
        self._look_at_bad_hosts()
        while not all(self.shown.values()) and time.monotonic() < deadline:
            time.sleep(1.0)
            self._look_at_bad_hosts()

    def _sample(self, at: float) -> Sample:
        newest = self._get("/v1/events?limit=1")["items"]
        store = self.policer.folder.parent.glob("policer.db*")
        return Sample(
            at=at,
            rss_mib=self.policer.rss_mib(),
            store_mib=sum(map(_mib, store)),
            log_mib=_mib(self.policer.folder / "log"),
            events=newest[0]["id"] if newest else 0,
        )

    def _look_at_bad_hosts(self) -> None:
        for name, fault in self.fleet.faults.items():
            if not self.shown.get(fault):
                live = self._get(f"/v1/hosts/{name}")["live"]
                events = (self._noted(name, kind) for kind in ("gone", "events_left_out"))
                self.shown[fault] = trouble(live) or next(filter(None, events), "")

    def _noted(self, name: str, kind: str) -> str:
        """Return the message of a host's last event of a kind; "" if there is none."""
        found = self._get(f"/v1/events?host={name}&kind={kind}&limit=1")["items"]
        return f"{kind}: {found[0]['words']}" if found else ""

    def troubled(self) -> dict[str, str]:
        """Return the compliant hosts that are not controlled, and the reasons."""
        found = {}
        path = "/v1/hosts?limit=500"
        while True:
            page = self._get(path)
            for item in page["items"]:
                name, live = item["entry"]["name"], item["live"]
                words = trouble(live) or ("" if live["engaged"] else "not engaged")
                if words and name not in self.fleet.faults and not name.endswith("-again"):
                    found[name] = words
            if page["next"] is None:
                return found
            path = f"/v1/hosts?limit=500&after={page['next']}"

    def entered_again(self) -> bool:
        """Whether a second entry of a daemon, by the address of another entry, was accepted."""
        entry = msgspec.to_builtins(msgspec.structs.replace(self.fleet.hosts[0], name="copy"))
        return self.probes.client.post("/v1/hosts", json=entry).is_success

    def _get(self, path: str) -> Any:
        """Return the answers; failures show in the probes.

        The policer may close a kept connection just as the next sample begins (RFC 9112, section
        9.5): none is kept.
        """
        while True:
            try:
                return self.probes.client.get(path).raise_for_status().json()
            except httpx.TransportError as error:
                self.probes.failed.append(f"{path}: {type(error).__name__}: {error}")
                time.sleep(PROBES_EVERY_S)


def trouble(live: dict[str, Any]) -> str:
    """Return the policer's message on a host with a problem; "" for one without."""
    if not live["reachable"]:
        return "not heard"
    said = (live["distrust"], live["link_problem"], live["refusal"], live["braked"] and "braked")
    return next((str(words) for words in said if words), "")


def _mib(file: Path) -> float:
    return file.stat().st_size / (1 << 20)
