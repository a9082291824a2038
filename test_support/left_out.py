"""What the tests of `make without` take out: each part, and all of them."""

from scripts.changes import CHECKOUT
from scripts.parts.declared import load_parts

PARTS = load_parts(CHECKOUT)
SELECTIONS = [*PARTS, *([",".join(PARTS)] if len(PARTS) > 1 else [])]
