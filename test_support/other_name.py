"""The name of the project, and one that it could have."""

from scripts.changes import CHECKOUT
from scripts.rename import read_name

OLD = read_name(CHECKOUT)
SHORTEST, LONGEST = "q" + "z", "q" + "z" * 13 + "7"
"""Composed, so that no file has them: a name must not occur."""
