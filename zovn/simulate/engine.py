"""Runs the compiled engine: scenario in, results out."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

from zovn.simulate.errors import EngineError
from zovn.simulate.results import RawResult, Result, result_of
from zovn.simulate.scenario import ALGORITHMS, MEAN_FLOW, Flow, Scenario

PROGRAM: Final = Path(__file__).parents[1] / "core" / "simulate" / "build" / "zovn-simulate"
VARIABLE: Final = "ZOVN_SIMULATE"
"""Names an engine that takes precedence."""
FIX: Final = "build it: make -C zovn/core/simulate"

Progress = Callable[[int], None]
"""Is called with the percentage of queries that are complete."""


def run(scenario: Scenario, progress: Progress = lambda _: None) -> Result:
    """Simulate a scenario.

    Raises:
        ConfigError: the scenario is invalid; it names the field and the fix.
        EngineError: the engine is not built, or fails.
    """
    scenario.check()
    with tempfile.TemporaryFile() as output:
        _run_engine("".join(_lines(scenario)).encode(), output, progress)
        output.seek(0)
        raw = msgspec.json.decode(output.read(), type=RawResult)
    return result_of(scenario, raw)


def program() -> Path:
    """Return the engine.

    Raises:
        EngineError: it is not built.
    """
    path = Path(os.environ.get(VARIABLE, PROGRAM))
    if not os.access(path, os.X_OK):
        raise EngineError(str(path), "the simulator's engine is not built", FIX)
    return path


def _run_engine(text: bytes, output: IO[bytes], progress: Progress) -> None:
    said = ""
    with subprocess.Popen(  # noqa: S603  our own program
        [program()], stdin=subprocess.PIPE, stdout=output, stderr=subprocess.PIPE
    ) as process:
        try:
            said = _talk(process, text, progress)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise EngineError("zovn-simulate", said or f"ended with {process.returncode}")


def _talk(process: subprocess.Popen[bytes], text: bytes, progress: Progress) -> str:
    """Write the scenario, follow the progress, and return what else the engine says."""
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        process.stdin.write(text)
        process.stdin.close()
    except BrokenPipeError:
        pass  # it has refused the scenario, and says why
    said = []
    for line in process.stderr:
        word, _, percent = line.decode().strip().partition(" ")
        if word == "progress":
            progress(int(percent))
        else:
            said.append(line.decode().strip().removeprefix("error: "))
    return "; ".join(said)


def _lines(scenario: Scenario) -> Iterator[str]:
    for key, value in _keys(scenario).items():
        yield f"{key} {value}\n"
    yield from map(_flow_line, scenario.flows)


def _keys(scenario: Scenario) -> dict[str, int]:
    fabric, buffers, tcp, queries = (
        scenario.fabric,
        scenario.buffers,
        scenario.tcp,
        scenario.queries,
    )
    names = ("pods", "chassis", "servers", "vms", "aggregations", "cores", "mtu", "overlay")
    return {name: getattr(fabric, name) for name in names} | {
        "link_ps_per_byte": round(8e12 / fabric.link_bps),
        "vm_ps_per_byte": round(8e12 / fabric.vm_bps),
        "hop_ps": _ps(fabric.hop_s),
        "stack_ps": _ps(fabric.stack_s),
        "virtual_lossless": int(scenario.mode[0] == "Z"),
        "physical_lossless": int(scenario.mode[1] == "Z"),
        "blocking": int(buffers.blocking),
        "classes": scenario.class_count,
        "background_class": int(scenario.background.own_class),
        "virtual_queue": buffers.virtual_queue,
        "buffer": buffers.port,
        "tcp": ALGORITHMS.index(tcp.algorithm),
        "window": tcp.window,
        "initial_window": tcp.initial_window,
        "restart_idle": int(tcp.restart_idle),
        "rto_min_ps": _ps(tcp.rto_min_s),
        "rto_slop_ps": _ps(tcp.rto_slop_s),
        "delayed_ack_ps": _ps(tcp.delayed_ack_s),
        "queries": queries.count,
        "interval_ps": _ps(queries.interval_s),
        "request": queries.request,
        "reply": queries.reply,
        "gap_ps": _gap_ps(scenario),
        "socket": scenario.background.socket,
        "seed": scenario.seed,
        "limit_ps": _ps(scenario.limit_s),
    }


def _gap_ps(scenario: Scenario) -> int:
    """Return the mean pause of a VM between two flows of the background; 0 without one."""
    fabric, load = scenario.fabric, scenario.background.load
    if load == 0:
        return 0
    return max(1, _ps(MEAN_FLOW * 8 * fabric.vms / (load * fabric.link_bps)))


def _flow_line(flow: Flow) -> str:
    numbers = (*flow.source, *flow.destination, flow.size, _ps(flow.start_s), flow.traffic_class)
    return f"flow {' '.join(map(str, numbers))} {int(flow.datagrams)}\n"


def _ps(seconds: float) -> int:
    return round(seconds * 1e12)
