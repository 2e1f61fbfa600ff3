"""The recipes of docs/howto/zovn-veth.md, run as they are written."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rigs.zovn_switch_rig import RunningSwitch, build_guest, running_switch
from rigs.zovn_veth_rig import HOST, container, host, require_lossless_veth
from support.waiting import eventually

from lab.system import namespaces
from zovn.switch import control

pytestmark = [pytest.mark.root, pytest.mark.external, pytest.mark.timeout(120)]
GUIDE = (Path(__file__).parents[3] / "docs" / "howto" / "zovn-veth.md").read_text()


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    build_guest()
    require_lossless_veth()


@pytest.fixture
def switch() -> Iterator[RunningSwitch]:
    """A host with a switch that has no ports."""
    with host(), running_switch(names="", netns=HOST) as running:
        yield running


def block(heading: str, number: int = 0) -> str:
    """Return a block of commands below a heading."""
    section = GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```\n(.*?)```", section, re.DOTALL)[number]


def execute(switch: RunningSwitch, commands: str) -> None:
    """Run commands on the host; the names of namespaces are this process's own."""
    commands = re.sub(r"\bc(\d)\b", lambda found: container(int(found[1])), commands)
    script = f"""set -e
        export ZOVN_CONTROL={switch.config.control}
        zovn() {{ {sys.executable} -m zovn "$@"; }}
        {commands}"""
    done = subprocess.run(
        [*switch.enter, "sh", "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def second(commands: str) -> str:
    """Return the same for a second container."""
    return commands.replace("c1", "c2").replace("p1", "p2").replace("10.77.0.1/", "10.77.0.2/")


@contextmanager
def process() -> Iterator[int]:
    """A process in a network namespace without a name, as a container has one."""
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo; exec sleep 600"], stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        try:
            yield running.pid
        finally:
            running.kill()


def wait_for(switch: RunningSwitch, attachments: int) -> None:
    """Wait until the second port was attached so many times."""
    eventually(lambda: control.ports(switch.config.control)[1].attachments == attachments)


def states(switch: RunningSwitch) -> list[str]:
    return [port.state for port in control.ports(switch.config.control)]


def test_two_namespaces(switch: RunningSwitch) -> None:
    try:
        execute(switch, block("A namespace"))
        execute(switch, second(block("A namespace")))
        execute(switch, block("A namespace", 1))
        assert states(switch) == ["runs", "runs"]
    finally:
        for number in (1, 2):
            namespaces.remove(container(number))


def test_a_container_of_docker_that_is_started_again(switch: RunningSwitch) -> None:
    recipe = second(block("A container of Docker"))
    assert recipe.startswith("pid=$(docker inspect")
    commands = recipe.partition("\n")[2]
    try:
        execute(switch, block("A namespace"))
        execute(switch, "zovn switch port add c1 --kind veth --interface p1")
        execute(switch, "zovn switch port add web --kind veth --interface p2")
        for times in (1, 2):
            with process() as pid:
                execute(switch, f"pid={pid}\n{commands}")
                wait_for(switch, times)
                # c1 may still have the address of the container that ended.
                execute(switch, f"nsenter -t {pid} -n ping -c 3 -i 0.1 10.77.0.1")
            eventually(lambda: states(switch)[1] == "gone")
    finally:
        namespaces.remove(container(1))
