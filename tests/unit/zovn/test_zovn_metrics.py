"""The switch's metrics: of all that it counts, served, and explained."""

import re
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest
from documents_rig import rows_under

from common.errors import ConfigError
from zovn.errors import ListenError
from zovn.switch.control import PortReport, StationReport, SwitchReport, status
from zovn.switch.metrics import COUNTED, SwitchCollector, served
from zovn.switch.rates import PortRates, Rates

ROOT: Final = Path(__file__).parents[3]
GUIDE: Final = (ROOT / "docs" / "howto" / "zovn-operation.md").read_text()
REPORT: Final = (ROOT / "zovn" / "core" / "program" / "report.c").read_text()
RULES: Final = (ROOT / "deploy" / "prometheus" / "zovn.yml").read_text()
FIELDS: Final = re.findall(r"\bFIELD\((\w+)\)", REPORT.partition("FIELDS[] =")[2])
REASONS: Final = re.findall(r'\[ZOVN_\w+\] = "(\w+)",', REPORT.partition("fault_name")[0])
KINDS: Final = {"counter": "_total", "gauge": ""}


def answer(fault: str = "none") -> str:
    """Return what a switch with one port answers, each counter with a number of its own."""
    words = [f"{name}={number}" for number, name in enumerate(FIELDS, start=1)]
    words += [f"drop_{name}={number}" for number, name in enumerate(REASONS, start=100)]
    return (
        "switch ports=1 lossy=2 threads=2 naps=7 missed=3 cpu_ns=1500000000,20\n"
        "port name=vm1 kind=vhost path=/p attached=1 attachments=4 vlan=1 trunk=0 class=0 "
        f"trust=nothing offloads=0 rate=0 state=runs lost=5 thread=1 stall=1 fault={fault} "
        f"{' '.join(words)}\nok\n"
    )


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[Path]:
    """A control socket that gives one client such an answer, as the compiled program does."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "control.sock"))
        listener.listen()

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                assert client.recv(100) == b"status\n"
                client.sendall(answer("head_twice").encode())

        thread = threading.Thread(target=serve)
        thread.start()
        yield tmp_path / "control.sock"
        thread.join()


def samples(control: Path) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in SwitchCollector(lambda: status(control)).collect()
        for sample in family.samples
    }


def test_all_that_the_program_counts_is_a_metric() -> None:
    assert set(COUNTED) == set(FIELDS)
    assert len(REASONS) == 12


def test_metrics_have_the_values_of_the_counters_in_base_units(switch: Path) -> None:
    found = samples(switch)
    number = {name: place for place, name in enumerate(FIELDS, start=1)}
    assert found["zovn_up",] == 1
    assert (found["zovn_naps_total",], found["zovn_missed_naps_total",]) == (7, 3)
    assert found["zovn_port_in_frames_total", "vm1"] == number["in"]
    assert found["zovn_port_held_frames", "vm1"] == number["held"]
    assert found["zovn_port_blocked_seconds_total", "vm1"] == pytest.approx(
        number["blocked_ns"] / 1e9
    )
    assert found["zovn_port_stalled", "vm1"] == 1
    assert found["zovn_port_lost_frames_total", "vm1"] == 5
    assert found["zovn_port_fault", "vm1", "head_twice"] == 1


def test_each_thread_has_its_cpu_time_and_its_ports(switch: Path) -> None:
    found = samples(switch)
    assert found["zovn_threads",] == 2
    assert found["zovn_thread_cpu_seconds_total", "0"] == 1.5
    assert found["zovn_thread_cpu_seconds_total", "1"] == pytest.approx(20e-9)
    assert (found["zovn_thread_ports", "0"], found["zovn_thread_ports", "1"]) == (0, 1)


def test_congestion_is_a_counter_of_its_own(switch: Path) -> None:
    found = samples(switch)
    assert found["zovn_port_congestion_drops_total", "vm1"] == 100
    reasons = {key[2] for key in found if key[0] == "zovn_port_drops_total"}
    assert reasons == set(REASONS) - {"congestion"}


def test_a_switch_that_is_away_is_a_metric_too(tmp_path: Path) -> None:
    assert samples(tmp_path / "none") == {("zovn_up",): 0}


def test_metrics_are_served(switch: Path) -> None:
    with served(switch, "127.0.0.1:0") as url, urllib.request.urlopen(url, timeout=30) as got:
        assert b'zovn_port_attached{port="vm1"} 1.0' in got.read()


@pytest.mark.parametrize("listen", ["", "9171", ":9171", "localhost:http", "127.0.0.1:99999"])
def test_what_is_no_address_is_refused(listen: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is no address \(e\.g\. 127\.0\.0\.1:9171\)"):
        served(tmp_path, listen).__enter__()


def test_an_address_that_is_taken_is_refused(tmp_path: Path) -> None:
    with served(tmp_path, "127.0.0.1:0") as url:
        taken = url.split("/")[2]
        with pytest.raises(ListenError, match="in use"):
            served(tmp_path, taken).__enter__()


# --- documents and alerts


def names(control: Path) -> set[str]:
    families = SwitchCollector(lambda: status(control)).collect()
    return {family.name + KINDS[family.type] for family in families}


def test_every_metric_is_explained(switch: Path) -> None:
    rows = rows_under(GUIDE, "## Metrics").values()
    explained = {name for row in rows for name in re.findall(r"`(zovn_\w+)`", row[0])}
    assert explained == names(switch)


def test_every_reason_is_explained() -> None:
    row = " ".join(rows_under(GUIDE, "## Metrics")["zovn_port_drops_total"])
    assert {reason for reason in REASONS if f"`{reason}`" not in row} == {"congestion"}


def test_every_reason_has_what_to_do_about_it() -> None:
    rows = rows_under(GUIDE, "## Why frames are dropped")
    assert set(REASONS) <= rows.keys()
    assert {"not_learned", "unsound", "lost", "beyond"} <= rows.keys()
    assert {len(row) for row in rows.values()} == {3}


def test_every_field_that_json_shows_is_explained() -> None:
    shapes = (SwitchReport, PortReport, StationReport, Rates, PortRates)
    fields = {one.encode_name for shape in shapes for one in msgspec.structs.fields(shape)}
    rows = rows_under(GUIDE, "## Scripts")
    explained = {name for row in rows.values() for name in re.findall(r"`(\w+)`", row[0])}
    assert explained == fields - {"ports"}
    assert set(COUNTED) <= set(re.findall(r"`(\w+)`", rows["counters"][1]))


def test_every_alert_is_explained_and_names_metrics_that_exist(switch: Path) -> None:
    alerts = re.findall(r"- alert: (\w+)", RULES)
    assert alerts == list(rows_under(GUIDE, "## Alerts"))
    named = {
        name for line in re.findall(r"expr: (.+)", RULES) for name in re.findall(r"zovn_\w+", line)
    }
    assert named <= names(switch)
    assert RULES.count("runbook: docs/howto/zovn-operation.md") == len(alerts)
