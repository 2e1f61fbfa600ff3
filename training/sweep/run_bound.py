"""Run a command until it or its owner ends, and then end all that the command has started.

The kernel signals the owner's end (prctl(2)), even by SIGKILL. This program then ends the command's
process group, a shell's children included. It is started by file name and needs only the standard
library.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

END_S = 3.0
"""How long the command may take to end on request, before it is killed."""
NOT_STARTED = 127
"""Exit code where the command cannot be started, as a shell's."""
_PR_SET_PDEATHSIG = 1
_AWAITED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}


def end_with(owner: int) -> None:
    """Have the kernel send SIGTERM when the thread that started this process ends.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl: {os.strerror(code)}")
    if os.getppid() != owner:  # it died before the lines above
        sys.exit(f"the owner {owner} is gone")


def run(words: Sequence[str]) -> int:
    """Run a command until it ends, or a signal asks for its end; return its exit code."""
    try:
        command = subprocess.Popen(  # noqa: S603  the operator's own command
            words,
            start_new_session=True,
            preexec_fn=_unblocked,  # noqa: PLW1509  this program has no threads
        )
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return NOT_STARTED
    while command.poll() is None and signal.sigwait(_AWAITED) == signal.SIGCHLD:
        pass
    _signal(command.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        command.wait(END_S)
    _signal(command.pid, signal.SIGKILL)
    code = command.wait()
    return code if code >= 0 else 128 - code


def _unblocked() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # no process of the group is left
        os.killpg(group, number)


def main() -> None:
    """Take the owner's id and the command's words."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)  # block them until sigwait
    end_with(int(sys.argv[1]))
    sys.exit(run(sys.argv[2:]))


if __name__ == "__main__":
    main()
