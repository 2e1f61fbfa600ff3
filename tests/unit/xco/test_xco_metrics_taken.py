"""Metrics whose address cannot be listened on now: a failure that is retried, not a mistake."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test_xco_cli import SETTINGS, TOPOLOGY
from test_xco_ports_agent import config

from xco.controller.config import load_controller_config
from xco.controller.metrics import serve_metrics
from xco.coordinator.config import load_config
from xco.coordinator.status import Served
from xco.errors import ControllerError
from xco.ports.metrics import served
from xco.ports.status import AgentStatus


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


def written(folder: Path, table: str, port: int) -> Path:
    """Write settings with an address of metrics in one table."""
    (folder / "topology.toml").write_text(TOPOLOGY)
    metrics = f'[{table}]\nmetrics = "127.0.0.1:{port}"'
    file = folder / "xco.toml"
    file.write_text(SETTINGS.format(folder=folder).replace(f"[{table}]", metrics))
    return file


def test_a_taken_address_of_a_controller_is_no_mistake_of_its_settings(
    tmp_path: Path, port: int
) -> None:
    settings = load_controller_config(written(tmp_path, "controller", port))
    said = rf"controller\.metrics: 127\.0\.0\.1:{port}: Address already in use"
    with pytest.raises(ControllerError, match=said):
        serve_metrics(settings, ("a", "b"))


def test_a_taken_address_of_a_coordinator_is_no_mistake_of_its_settings(
    tmp_path: Path, port: int
) -> None:
    settings = load_config(written(tmp_path, "coordinator", port))
    said = rf"coordinator\.metrics: 127\.0\.0\.1:{port}: Address already in use"
    with pytest.raises(ControllerError, match=said):
        Served(settings).__enter__()


def test_a_taken_address_of_a_port_agent_is_no_mistake_of_its_settings(port: int) -> None:
    def now() -> AgentStatus:
        raise AssertionError("nothing asks")

    said = rf"port-agent\.metrics: 127\.0\.0\.1:{port}: Address already in use"
    with pytest.raises(ControllerError, match=said):
        served(replace(config(), metrics=("127.0.0.1", port)), now).__enter__()
