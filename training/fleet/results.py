"""Read a fleet's recordings in one folder, and write models, reports and the page next to them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from models import ModelError, dump_host
from training.errors import FleetPathError, RecordingError, TrainingError
from training.fit.verdict import verdict_on
from training.fleet.file import RESERVED
from training.fleet.page import Links, fleet_page
from training.fleet.run import HostFailure, write_result
from training.fleet.summary import HostFit, Summary, fitted, summarize
from training.recording.recording import Recording, read_csv
from training.report.report import report

PAGE = f"{RESERVED}.html"


def names_in(folder: Path) -> list[str]:
    """Return the names of the recordings in a folder.

    Raises:
        FleetPathError: it cannot be read, has none, or one has the page's name.
    """
    try:
        names = sorted(each.stem for each in folder.iterdir() if each.suffix == ".csv")
    except OSError as error:
        fix = "give a folder that has recordings, NAME.csv"
        raise FleetPathError(str(folder), error.strerror or str(error), fix) from error
    if not names:
        fix = "put the CSV files of sweeps there, NAME.csv each"
        raise FleetPathError(str(folder), "no recording is there", fix)
    if odd := next((name for name in names if not name.isprintable()), None):
        fix = "rename it: pages and models are UTF-8 text"
        raise FleetPathError(repr(odd), "no printable name", fix)
    if RESERVED in names:
        fix = f"rename it: {PAGE} is the page of all hosts"
        raise FleetPathError(str(folder / f"{RESERVED}.csv"), "this name is taken", fix)
    return names


def read_all(
    folder: Path, names: Sequence[str], failures: Sequence[HostFailure] = ()
) -> tuple[dict[str, Recording], list[HostFailure]]:
    """Return the available recordings, and the failures including unreadable recordings."""
    recordings: dict[str, Recording] = {}
    failed = {failure.name: failure for failure in failures}
    for name in names:
        try:
            recordings[name] = read_csv(folder / f"{name}.csv")
        except RecordingError as error:
            failed.setdefault(name, HostFailure(name, error.problem, error.fix))
    return recordings, list(failed.values())


def publish(
    folder: Path,
    recordings: dict[str, Recording],
    failures: Sequence[HostFailure],
    *,
    rough: bool,
    tell: Callable[[str, str], object],
) -> Summary:
    """Fit each recording, and write its model and report and the page of all.

    Args:
        folder: the output folder.
        recordings: by host.
        failures: the hosts that could not be swept.
        rough: write models that are not precise enough, too.
        tell: called with a host's name and the current step.

    Raises:
        FleetPathError: a file cannot be written.
    """
    fits: dict[str, HostFit | str] = {}
    links: dict[str, Links] = {}
    for name, recording in recordings.items():
        tell(name, "fit and report")
        fits[name] = found = fitted(recording)
        fits[name], links[name] = _written(folder, name, found, rough=rough)
        _set_aside(folder, name, links[name])
    summary = summarize(recordings, fits)
    known = {name: one.fit for name, one in sorted(fits.items()) if isinstance(one, HostFit)}
    _write(folder / PAGE, fleet_page(summary, known, links, failures))
    return summary


def _written(
    folder: Path, name: str, found: HostFit | str, *, rough: bool
) -> tuple[HostFit | str, Links]:
    """Write the report and the model of one host, if any; a refusal concerns only this host."""
    csv = f"{name}.csv"
    if isinstance(found, str):
        return found, Links(csv)
    html, toml = f"{name}.html", f"{name}.toml"
    try:
        text = report(found.recording, found.fit, found.design)
    except (TrainingError, ModelError) as error:
        return str(error), Links(csv)
    _write(folder / html, text)
    if not (verdict_on(found.fit).usable or rough):
        return found, Links(csv, html)
    _write(folder / toml, dump_host(found.model))
    return found, Links(csv, html, toml)


def _set_aside(folder: Path, name: str, links: Links) -> None:
    """Rename report and model of an earlier recording, which would pass for those of this one.

    Raises:
        FleetPathError: one cannot be renamed.
    """
    for ending, written in (("html", links.report), ("toml", links.model)):
        path = folder / f"{name}.{ending}"
        try:
            if written is None and path.exists():
                path.replace(path.with_name(f"{path.name}.before"))
        except OSError as error:
            fix = "give a folder that this user may write"
            raise FleetPathError(str(path), error.strerror or str(error), fix) from error


def _write(path: Path, text: str) -> None:
    write_result(path, text.encode())
