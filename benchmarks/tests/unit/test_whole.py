"""What a step of the whole is worth: sustained, refused, timed out, and counted in its hour."""

from dataclasses import replace

import pytest
from aiokafka import TopicPartition

from benchmarks.delivery.http_client import Reply
from benchmarks.series import Samples
from benchmarks.whole.carrying import record_latency, record_overload
from benchmarks.whole.order_to_row import TOPIC, Batch, Confirmation, waits
from benchmarks.whole.ordering import REFUSED, REJECTED, Ordered, is_overloaded
from benchmarks.whole.step import CLIENT, Step
from fetching.errors import Failure

SUSTAINED = Step(
    rate=10,
    seconds=3,
    began_at=0.0,
    orders=[Ordered("1", at / 10, at / 10, at / 10 + 0.1, "confirmed") for at in range(29)],
    cpu_seconds={"kafka": 0.29, CLIENT: 0.58},
    batch_sizes={},
)


def add(step: Step, status: str) -> Step:
    return replace(step, orders=[*step.orders, Ordered("", 2.9, 2.91, 2.91, status)])


def test_a_step_with_a_refused_order_or_one_that_timed_out_is_not_sustained() -> None:
    assert SUSTAINED.is_sustained
    assert not add(SUSTAINED, REFUSED).is_sustained
    assert not add(SUSTAINED, REJECTED).is_sustained


def test_a_step_in_which_a_backlog_grows_is_not_sustained() -> None:
    late = [each._replace(decided_at=each.decided_at + 4) for each in SUSTAINED.orders]
    assert not replace(SUSTAINED, orders=late).is_sustained


def test_orders_are_in_time_until_the_last_one_may_be_decided() -> None:
    late = [each._replace(decided_at=max(each.decided_at, 4.9)) for each in SUSTAINED.orders]
    assert replace(SUSTAINED, orders=late).confirmed_share == pytest.approx(29 / 30)
    assert replace(SUSTAINED, orders=late).goodput == 0


def test_the_cpu_of_the_stack_is_without_that_of_its_client() -> None:
    assert SUSTAINED.cpu == pytest.approx({"kafka": 10, CLIENT: 20})
    assert SUSTAINED.cpu_of_stack == pytest.approx(10)


def test_orders_that_were_not_confirmed_are_counted_and_have_no_latency() -> None:
    samples = Samples(list)
    record_latency(add(add(SUSTAINED, REFUSED), REJECTED), samples, "")

    assert samples["confirmed, p50"] == pytest.approx([100])
    assert samples["refused, at 10 orders per second"] == [1]
    assert samples["timed out, at 10 orders per second"] == [1]


def test_without_confirmed_orders_nothing_is_measured() -> None:
    with pytest.raises(Failure, match="of 1 orders 0 were confirmed"):
        record_latency(add(replace(SUSTAINED, orders=[]), REFUSED), Samples(list), "")


def test_goodput_is_what_was_confirmed_while_orders_were_offered() -> None:
    samples = Samples(list)
    late = SUSTAINED.orders[-1]._replace(decided_at=3.1)
    record_overload(replace(SUSTAINED, orders=[*SUSTAINED.orders, late]), samples)

    assert samples["confirmed while offered, at 10 orders per second"] == pytest.approx([29 / 3])
    assert samples["offered, at 10 orders per second"] == pytest.approx([10])


def test_only_an_overload_that_says_when_to_try_again_is_a_refusal() -> None:
    assert is_overloaded(Reply(503, b'{"code":"overloaded"}', 2))
    assert not is_overloaded(Reply(503, b'{"code":"overloaded"}', None))
    assert not is_overloaded(Reply(503, b'{"code":"unavailable"}', 2))
    assert not is_overloaded(Reply(500, b"", 2))


def test_an_order_waits_from_its_event_to_the_commit_of_the_batch_that_has_read_it() -> None:
    zero, one = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
    batches = [Batch({zero: 5, one: 0}, 10.0), Batch({zero: 8, one: 3}, 12.0)]
    confirmations = [
        Confirmation(zero, 4, 9.0),
        Confirmation(zero, 5, 9.0),
        Confirmation(one, 2, 11.5),
    ]

    assert list(waits(confirmations, batches)) == pytest.approx([1_000, 3_000, 500])
