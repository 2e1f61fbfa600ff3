"""Processes of others, which may end while they are looked at."""

from pathlib import Path


def command_line(pid: int) -> str:
    """Return the words that a process was started with; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):  # the second: it ends while it is read
        return ""
