"""Errors that every package may raise; each carries its data and a fix."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager


class XtcError(Exception):
    """The root: everything that xtc raises on purpose."""


class UnitError(XtcError, ValueError):
    """A quantity that cannot be read."""

    def __init__(self, field: str, got: str, expected: str) -> None:
        self.field, self.got, self.expected = field, got, expected
        super().__init__(f"{field}: {got!r} is not {expected}")


class ConfigError(XtcError):
    """A configuration that cannot be used: where, what is wrong, and how to fix it."""

    def __init__(self, where: str, problem: str, fix: str = "", *, at: str = "") -> None:
        self.where, self.problem, self.fix, self.at = where, problem, fix, at
        place = f"{at}: {where}" if at and where else at or where
        super().__init__(f"{place}: {problem}" + (f" ({fix})" if fix else ""))

    def placed(self, at: str) -> "ConfigError":
        """Return the same mistake with the file and line of its key."""
        return ConfigError(self.where, self.problem, self.fix, at=self.at or at)


class ConfigErrors(ConfigError):  # noqa: N818
    """All mistakes of a configuration, if it has several."""

    def __init__(self, mistakes: Sequence[ConfigError]) -> None:
        first = mistakes[0]
        super().__init__(first.where, first.problem, first.fix, at=first.at)
        self.mistakes = tuple(mistakes)

    def __str__(self) -> str:
        return "\n".join(map(str, self.mistakes))


def mistakes_of(error: ConfigError) -> tuple[ConfigError, ...]:
    """Return the mistakes in an error: itself, or each of several."""
    return error.mistakes if isinstance(error, ConfigErrors) else (error,)


class Mistakes:
    """Collects the mistakes of a configuration, so that one does not hide the next."""

    def __init__(self, found: Iterable[ConfigError] = ()) -> None:
        self.found = list(found)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the mistakes that the block raises, and continue after it."""
        try:
            yield
        except ConfigError as error:
            self.found.extend(mistakes_of(error))

    def check(self) -> None:
        """Raise the noted mistakes.

        Raises:
            ConfigError: the one mistake, or all of them as `ConfigErrors`.
        """
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            raise ConfigErrors(self.found)


class Busy(XtcError):  # noqa: N818
    """Another daemon holds the state directory."""
