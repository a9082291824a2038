"""What can be added to the aggregates of this checkout, all at once: typed, and true by its tests.

`test_new.py` runs the commands themselves, on more.
"""

from collections.abc import Iterator

import pytest

from test_support.checkout_copy import Copy, copied_checkout

ADD_ALL = """
from scripts.changes import CHECKOUT, run_steps
from scripts.new.addition import write
from scripts.new.aggregates import find_aggregate
from scripts.new.event_versions import plan_event_version
from scripts.new.reactions import plan_reaction
from scripts.new.things import list_steps, plan_command, plan_event, plan_read_model
from shared.runtime.declarations import load_declarations

changed = []
for name, on in (("user", "item-listed"), ("item", "user-moved"), ("order", "user-deleted")):
    declared = load_declarations(CHECKOUT)
    aggregate = find_aggregate(CHECKOUT, declared, name)
    addition = plan_reaction(CHECKOUT, declared, aggregate, "refund", "refunded", on)
    write(CHECKOUT, addition)
    changed += [path for path in addition.texts if path not in changed]
    load_declarations.cache_clear()
    for plan, words in (
        (plan_command, ("weigh", "weighed")),
        (plan_event, ("damaged",)),
        (plan_read_model, ("activity",)),
    ):
        aggregate = find_aggregate(CHECKOUT, load_declarations(CHECKOUT), name)
        addition = plan(CHECKOUT, aggregate, *words)
        write(CHECKOUT, addition)
        changed += [path for path in addition.texts if path not in changed]
for type_ in ("user-credit-limit-changed", "user-registered", "item-repriced", "order-rejected"):
    addition = plan_event_version(CHECKOUT, load_declarations(CHECKOUT), type_)
    write(CHECKOUT, addition)
    changed += [path for path in addition.texts if path not in changed]
run_steps(CHECKOUT, list_steps("users-svc", changed), print)
"""


@pytest.fixture(scope="module")
def copy() -> Iterator[Copy]:
    """The copy with one of each thing for each aggregate."""
    with copied_checkout() as copy:
        copy.printed("make", "setup")
        copy.python("-c", ADD_ALL)
        yield copy


def test_it_is_linted_typed_and_keeps_its_contract(copy: Copy) -> None:
    """The steps have linted what changed, and checked the types of users-svc."""
    copy.python("-m", "mypy", "orders-svc")
    copy.python("-m", "contracts", "check")


def test_its_tests_pass(copy: Copy) -> None:
    tests = [
        f"{folder}/tests/unit/test_{name}.py"
        for folder, aggregate in (
            ("users-svc", "user"),
            ("orders-svc", "item"),
            ("orders-svc", "order"),
        )
        for name in (
            *(f"weigh_{aggregate}", f"{aggregate}_weighed", f"{aggregate}_damaged"),
            f"refund_{aggregate}",
        )
    ]
    tests += [
        "users-svc/tests/unit/test_user_samples.py",
        "orders-svc/tests/unit/test_order_samples.py",
    ]
    tests += ["users-svc/tests/integration/test_refund_user_reaction.py"]
    tests += ["contracts/tests/unit/test_samples.py"]
    copy.python("-m", "pytest", "-q", "-n", "0", *tests)
