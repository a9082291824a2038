"""What does not balance, by the checks of `make audit` and `make check-cells`."""

from local_stack import postgres
from local_stack.stack_spec import StackContext
from verification import audit
from verification.differential import check_cells


async def count(context: StackContext) -> int:
    """Orders and users whose credit does not balance, and wrong cells."""
    users, orders = (postgres.dsn(context, each) for each in ("users", "orders"))
    books = await audit.audit(users, orders)
    checked = await check_cells.check(context)
    return sum(1 for _ in audit.findings(books)) + len(checked.wrong)
