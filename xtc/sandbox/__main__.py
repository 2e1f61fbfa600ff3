"""One simulated host, which `xtc sandbox run` starts: DIRECTORY NAME OWNER."""

import sys
from pathlib import Path

from common.command import report_errors
from xtc.exit_codes import CODES
from xtc.sandbox.layout import MOST_HOSTS, places
from xtc.sandbox.processes import run_host

with report_errors("xtc", CODES):
    directory, name, owner = sys.argv[1:]
    place = next(one for one in places(Path(directory), MOST_HOSTS) if one.name == name)
    run_host(place, int(owner))
