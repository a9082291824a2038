"""The audit: balanced books have no findings, and each kind of error has one."""

from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import pytest

from test_support.system.stack import Stack
from verification.audit import Books, Holding, Order, findings

USER, ORDER, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
AMOUNT = Decimal("30.00")
HELD = Holding(reserved=AMOUNT, granted=AMOUNT, refused=False)

BOOKS = Books(
    limits={USER: Decimal("100.00")},
    holdings={(USER, ORDER): HELD},
    taken={ORDER: 2},
    orders={ORDER: Order(user_id=USER, amount=AMOUNT, types=["order-placed", "order-confirmed"])},
)


def story(*types: str) -> dict[UUID, Order]:
    return {ORDER: Order(user_id=USER, amount=AMOUNT, types=types)}


@pytest.mark.parametrize(
    "books",
    [
        BOOKS,
        replace(BOOKS, orders=story("order-placed", "order-confirmed", "order-cancelled")),
        replace(BOOKS, holdings={}, taken={}, orders=story("order-placed")),
        replace(
            BOOKS,
            holdings={
                (USER, ORDER): Holding(reserved=Decimal(0), granted=Decimal(0), refused=True)
            },
            orders=story("order-placed", "order-rejected"),
        ),
    ],
    ids=["confirmed", "a cancellation is on its way", "a placement is on its way", "refused"],
)
def test_books_that_balance_have_no_findings(books: Books) -> None:
    assert list(findings(books)) == []


@pytest.mark.parametrize(
    ("books", "words"),
    [
        (replace(BOOKS, limits={USER: Decimal("29.99")}), "limit of 29.99"),
        (replace(BOOKS, limits={}), "limit of 0.00"),
        (
            replace(BOOKS, taken={ORDER: 3}, orders=story("a", "b", "order-cancelled")),
            "0.00 are due",
        ),
        (replace(BOOKS, holdings={}), "confirmed on 0.00"),
        (
            replace(BOOKS, holdings={(USER, ORDER): replace(HELD, reserved=Decimal("30.01"))}),
            "holds 30.01 of credit, and 30.00 are due",
        ),
        (replace(BOOKS, holdings={(USER, ORDER): HELD, (USER, OTHER): HELD}), "which is no order"),
    ],
    ids=["over the limit", "no limit", "not released", "not reserved", "a cent", "no order"],
)
def test_books_that_do_not_balance_are_found(books: Books, words: str) -> None:
    assert any(words in finding for finding in findings(books))


def test_the_stack_balances(stack: Stack) -> None:
    assert "all balance, to the cent" in stack.make_output("audit")
