"""A step of the benchmark is sustained only if every order was accepted."""

from dataclasses import replace

import pytest

from benchmarks.delivery.confirming import Step, record_latency
from benchmarks.delivery.http_client import Reply
from benchmarks.delivery.ordering import REFUSED, Ordered, is_overloaded
from benchmarks.series import Samples
from fetching.errors import Failure

SUSTAINED = Step(
    rate=10,
    seconds=3,
    began_at=0.0,
    orders=[Ordered("1", at / 10, at / 10, at / 10 + 0.1, "confirmed") for at in range(29)],
    cpu={},
    batch_sizes={},
)
ONE_REFUSED = replace(SUSTAINED, orders=[*SUSTAINED.orders, Ordered("", 2.9, 2.91, 2.91, REFUSED)])


def test_a_step_with_a_refused_order_is_not_sustained() -> None:
    assert SUSTAINED.is_sustained
    assert not ONE_REFUSED.is_sustained


def test_refused_orders_are_named_apart_from_those_that_were_not_confirmed() -> None:
    with pytest.raises(Failure, match="1 of 30 orders were not confirmed, 1 of them were refused"):
        record_latency(ONE_REFUSED, Samples(list))


def test_only_an_overload_is_a_refusal() -> None:
    assert is_overloaded(Reply(503, b'{"code":"overloaded"}'))
    assert not is_overloaded(Reply(503, b'{"code":"unavailable"}'))
    assert not is_overloaded(Reply(500, b""))
