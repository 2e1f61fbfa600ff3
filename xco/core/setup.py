"""Builds the compiled core with its Makefile, and puts library and programs into the package."""  # noqa: INP001  not a module of any

import subprocess
from pathlib import Path
from typing import ClassVar

from setuptools import Command, Distribution, setup
from setuptools.command.build import build
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
BUILT = ("libxcosched.so", "xco-controller", "xco-coordinator", "gate_classify.bpf.o", "shim.bpf.o")


class BuildCore(Command):
    """Runs `make`, then copies its output into the package being built."""

    description = "build the library and the programs with make"
    user_options: ClassVar[list[tuple[str, str | None, str]]] = []

    def initialize_options(self) -> None:
        """There are no options."""

    def finalize_options(self) -> None:
        """There are no options."""

    def run(self) -> None:
        """Build, and copy.

        Raises:
            CalledProcessError: make failed; its output says why.
        """
        made = Path(self.get_finalized_command("build").build_temp).absolute() / "core"
        command = ["make", "-C", str(HERE), f"BUILD={made}"]
        subprocess.run(command, check=True)  # noqa: S603  whichever make is on the path
        package = Path(self.get_finalized_command("build_py").build_lib) / "xco_core"
        for name in BUILT:
            if (made / name).exists():
                self.copy_file(str(made / name), str(package / name))


class Build(build):
    """The usual build, and the core."""

    sub_commands: ClassVar = [*build.sub_commands, ("build_core", None)]


class Binary(Distribution):
    """A wheel with machine code: for one platform, though for any Python."""

    def has_ext_modules(self) -> bool:
        """Report that the package has machine code."""
        return True


setup(
    cmdclass={"build": Build, "build_core": BuildCore, "build_py": build_py},
    distclass=Binary,
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
