"""A fixture: the Debian packages of this run."""

import os

import pytest
from package_rig import Packages


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """The packages of this run."""
    own = tmp_path_factory.getbasetemp()
    # Each process of xdist has a folder of its own in the run's.
    return Packages(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)
