"""Settings of all tests. That this file is here puts ``writers`` within every test's reach."""

from __future__ import annotations

import os

from hypothesis import settings

# No test depends on how busy the machine is. A merge is judged by the same examples every
# time; new ones are sought wherever people work.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
