"""`xco port-agent` with the real controller: what it hears, and what it answers."""

from pathlib import Path

import pytest
from openflow_switch import Switch, counting, switch
