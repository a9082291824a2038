"""What the tests of `make without` leave out: each part, some pairs, all."""

from local_stack.settings import CHECKOUT
from scripts.parts.declared import load_parts

PARTS = list(load_parts(CHECKOUT))
PAIRS = (
    "benchmarks,kubernetes",
    "faust,cluster",
    "lessons,kubernetes",
    "verification,cluster",
)
COMBINATIONS = [
    *PARTS,
    *(pair for pair in PAIRS if {*pair.split(",")} <= {*PARTS}),
    ",".join(PARTS),
]
