"""Places for clients that stay: so many and no more, each given back once."""

from collections.abc import Callable

from litestar.exceptions import HTTPException

RETRY_S = 5


class Slots:
    """Counts streams; used by the event loop alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0

    def take(self) -> Callable[[], None]:
        """Take a place; return what gives it back.

        Raises:
            HTTPException: all are taken (503).
        """
        if self.taken >= self._most:
            raise HTTPException(
                f"{self._most} clients stream already",
                status_code=503,
                headers={"Retry-After": str(RETRY_S)},
            )
        self.taken += 1
        return self._give_back

    def _give_back(self) -> None:
        self.taken -= 1
