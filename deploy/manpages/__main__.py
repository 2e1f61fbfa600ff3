"""Write the man pages into a directory: python -m deploy.manpages DIRECTORY."""

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from typer.main import get_command

from deploy.manpages import commands, configuration, settings
from policer.cli.main import app as policer
from xco.cli.lazy import load
from xco.cli.main import app as xco
from xtc.cli.main import app
from zovn.cli.main import app as zovn

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "reference" / "configuration.md"


def main(directory: str) -> None:
    """Write the pages, dated by SOURCE_DATE_EPOCH for reproducible builds."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    date = datetime.fromtimestamp(seconds, UTC).date().isoformat()
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    (target / "xtc.8").write_text(commands.page(get_command(app), date))
    policers = commands.page(get_command(policer), date, commands.POLICER)
    (target / "policer.8").write_text(policers)
    (target / "xco.8").write_text(commands.page(load(get_command(xco)), date, commands.XCO))
    (target / "zovn.8").write_text(commands.page(get_command(zovn), date, commands.ZOVN))
    (target / "xtc.toml.5").write_text(configuration.page(DOCUMENT.read_text(), date))
    for one in (settings.POLICER, settings.XCO, settings.ZOVN):
        said = (ROOT / one.document).read_text()
        (target / f"{one.program}.toml.5").write_text(settings.page(one, said, date))


if __name__ == "__main__":
    main(*sys.argv[1:])
