"""Log output: JSON for machines, aligned text for people."""

import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from common.printable import printable_lines


def set_up_logging(*, json: bool, level: str) -> None:
    """Log to standard error: JSON for machines, aligned text for people."""
    renderer = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *([] if json else [_escape]),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )


def _escape(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Escape names chosen by tenants, to protect the terminal; JSON escapes by itself."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = printable_lines(value)
    return event
