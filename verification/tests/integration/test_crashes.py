"""The job as a process, killed as by `kill -9`; `make crashes` kills more, and the servers too."""

import asyncio

import pytest

from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import StackSpec
from local_stack.testing import throwaway_stack
from shared.messaging import topics
from shared.runtime.brokers import Brokers
from verification.crashes.campaign import Blow, play

pytestmark = pytest.mark.verify(part="crashes")

ORDERS = 600
BATCHES = 8
"""So many that there are some left for each kill."""


def test_v13_a_job_killed_inside_and_after_its_commit_counts_each_order_once() -> None:
    with throwaway_stack(StackSpec(processes=(POSTGRES, KAFKA))) as context:
        asyncio.run(topics.create(Brokers(context.address("kafka"))))

        outcome = play(context, 1, ORDERS, [Blow.JOB_INSIDE, Blow.JOB_AFTER], batches=BATCHES)

    assert outcome.wrong == []
    assert outcome.counted > ORDERS // 2
