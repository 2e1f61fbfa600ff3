"""What is used of gRPC and pygnmi, which are optional: imported here alone."""

import os

from xco.errors import ConfigError

# gRPC writes lines of its own to stderr, between those of the log; it reads this when imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
try:
    import grpc
    from pygnmi.create_gnmi_path import gnmi_path_generator
    from pygnmi.spec.v080 import gnmi_pb2, gnmi_pb2_grpc
except ModuleNotFoundError as missing:
    raise ConfigError(
        "gnmi", "", f"{missing.name} is not installed", "pip install 'xtc[gnmi]'"
    ) from missing

__all__ = ["gnmi_path_generator", "gnmi_pb2", "gnmi_pb2_grpc", "grpc"]
