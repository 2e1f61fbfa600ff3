"""Stands in for xtc-train on a host: sweeps a simulated one into --output, and goes on with it.

Options of its own: --speed, --seed and --samples of the host; --fail CODE ends with a line on
standard error; --die-at N kills itself at the Nth sample, --wait-at N waits there for a signal;
--stubborn ignores SIGTERM, --label takes any word. What it got is kept in argv.json. PYTHONPATH has
to name the tests and the folder above them.
"""

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from training_fleet_rig import FastHost, metadata

from benchmarks.training.coverage_host import Case
from training.recording.sweep_model import aims_for
from training.sweep.bench import Measured
from training.sweep.sweep import Sweep, resumed


class Fragile(FastHost):
    """A host on which a sweep breaks."""

    def __init__(self, options: argparse.Namespace, done: int) -> None:
        super().__init__(Case(samples=options.samples), options.seed, options.speed)
        self._options, self._done = options, done

    def sample(self) -> Measured:
        """Break where the options say so."""
        self._done += 1
        if self._done == self._options.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._done == self._options.wait_at:
            sys.stderr.write("here it waits, 1:05 left at most\n")
            sys.stderr.flush()
            while True:
                signal.pause()
        return super().sample()


def ended(_number: int, _frame: object) -> None:
    Path("ended").touch()  # standard error may be closed
    sys.stderr.write("stopped; what was capped is as it was\n")
    sys.exit(1)


def main() -> None:
    signal.signal(signal.SIGTERM, ended)
    Path("argv.json").write_text(json.dumps(sys.argv[1:]))
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["sweep"])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--speed", type=float, default=1.0)
    for name, default in (("seed", 1), ("samples", 60), ("fail", 0), ("die-at", 0), ("wait-at", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--stubborn", action="store_true")
    parser.add_argument("--label")
    options = parser.parse_args()
    if options.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.fail:
        sys.stderr.write("the lab: it is on fire (put it out)\n")
        sys.exit(options.fail)
    recording = resumed(metadata(options.output.stem), options.output)
    sys.stderr.write(f"begins at {len(recording.samples)} samples, 0:59 left at most\n")
    host = Fragile(options, len(recording.samples))
    Sweep(host, recording, options.output, aims_for(options.samples), lambda _: None).run()


if __name__ == "__main__":
    main()
