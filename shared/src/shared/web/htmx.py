"""htmx, for the processes that serve a page: one copy of what its authors released, unchanged."""

from pathlib import Path

FILES = Path(__file__).parent / "vendor"
"""NOTICE there names the release; a test compares the files with it."""
