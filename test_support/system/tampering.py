"""A row of the hours that says something else than the event stores."""

from test_support.system.sample import Sample
from test_support.system.stack import Stack


def tamper(stack: Stack, sample: Sample, cents: int) -> None:
    """Change the amount that Jack has paid."""
    changed = stack.fetch(
        "analytics",
        f"UPDATE {stack.cells} SET cents = cents + $3"
        " WHERE hour = $1 AND user_id = $2 RETURNING cents",
        sample.hour,
        sample.users["Jack"],
        cents,
    )
    assert len(changed) == 1
