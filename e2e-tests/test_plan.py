"""The plan of capacity answers on a machine where the stack runs."""

from test_support.system.stack import Stack


def test_a_plan_is_made_of_what_is_given(stack: Stack) -> None:
    printed = stack.make_output("plan", "rate=1000", "peak=2000", "size=500", "days=1")

    assert printed.startswith("1,000 records a second on average, 2,000 at the peak; 500 bytes")
