"""Types of arguments for argparse: what cannot be used is a usage error, and says what to write."""

import argparse
from collections.abc import Callable


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return what reads a whole number, from `least` to `most`."""
    fix = f"write a whole number from {least} " + ("on" if most is None else f"to {most}")

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f'"{text}": {fix}')
        return number

    return read
