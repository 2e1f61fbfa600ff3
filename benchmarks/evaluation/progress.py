"""Progress of an evaluation: the time left, from planned and measured seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of the plan is done; all times in seconds."""

    planned_s: float
    """Of all runs."""
    done_s: float = 0.0
    """Planned time of the completed runs."""
    took_s: float = 0.0
    """Measured time of those runs."""

    def after(self, planned_s: float, took_s: float) -> "Progress":
        """Return the progress after one more run."""
        return Progress(self.planned_s, self.done_s + planned_s, self.took_s + took_s)

    def without(self, planned_s: float) -> "Progress":
        """Return the progress when some runs of the plan will not be made."""
        return Progress(self.planned_s - planned_s, self.done_s, self.took_s)

    @property
    def left_s(self) -> float:
        """Estimated time left: the planned time, scaled by how long completed runs took."""
        slower = self.took_s / self.done_s if self.done_s > 0 else 1.0
        return max(0.0, self.planned_s - self.done_s) * slower

    @property
    def share(self) -> float:
        """The completed share of the plan, 0 to 1."""
        return min(1.0, self.done_s / self.planned_s) if self.planned_s > 0 else 1.0

    @property
    def words(self) -> str:
        """Description for people."""
        return f"{self.share:4.0%}, {clock(self.left_s)} left"


def clock(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
