"""A handle on a running traffic program: one role of it, in its place."""

from lab.programs.processes import Place
from lab.programs.reporter import Counts, Reporter, words_of
from lab.traffic import build


class Traffic(Reporter[Counts]):
    """One running role of the traffic program, which counts from its start on.

    Raises:
        ProgramError: it ended, or was not ready within a minute.
        MissingRequirementError: it is not built yet, and there is no C compiler.
    """

    def __init__(
        self, counts: type[Counts], place: Place, role: str, **options: str | int | None
    ) -> None:
        """Start it and wait until traffic can flow.

        Args:
            counts: the type of its reports.
            place: its place.
            role: its role; see lab/traffic/roles.h.
            options: of the role, without dashes; None omits one.
        """
        words = [str(build.program()), role, *words_of(**options)]
        super().__init__(role, counts, place.command(words))
