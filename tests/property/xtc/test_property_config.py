"""Whatever a file says, it is a configuration or a mistake."""

from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ConfigError
from common.toml_tables import KeyPlaces
from xtc.config.file import _convert
from xtc.config.schema import Config, DaemonSection, RouterSection
from xtc.spec import ActuatorSpec

KEYS = [
    *RouterSection.__struct_fields__,
    *DaemonSection.__struct_fields__,
    *(key for spec in get_args(ActuatorSpec) for key in spec.__struct_fields__),
    "typo",
]
KINDS = ["cgroup", "deadline", "libvirt", "simulated", "other"]
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.datetimes(),
    st.sampled_from([*KINDS, "/run/netns/a", "container:a", "10%"]),
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)
actuators = st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS)}, optional=dict.fromkeys(KEYS, leaves)
)
sections = st.fixed_dictionaries({"actuator": actuators | values}, optional={"floor": values})
tables = st.fixed_dictionaries(
    {},
    optional={
        "daemon": values,
        "log": values,
        "typo": values,
        "router": st.dictionaries(st.text(max_size=5), sections | values, max_size=3) | values,
    },
)


@given(tables)
def test_any_tables_are_a_configuration_or_a_mistake(content: dict[str, object]) -> None:
    try:
        msgspec.convert(content, Config)
    except msgspec.ValidationError:
        with pytest.raises(ConfigError):
            _convert(content, KeyPlaces(), Path("xtc.toml"))
    else:
        _convert(content, KeyPlaces(), Path("xtc.toml"))
