"""Hypothesis profiles: `gate` says the same every time, `hunt` looks for new failures."""

import os

from hypothesis import settings

settings.register_profile("gate", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("hunt", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "gate"))
