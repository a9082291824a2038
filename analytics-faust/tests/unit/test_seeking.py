"""Nothing is delivered while the consumer seeks."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from faust.transport.drivers import aiokafka
from faust.types import TP

from analytics_faust.seeking import Consumer

PARTITION = TP("users.v1", 0)


@pytest.mark.parametrize(("kind", "is_active"), [(Consumer, False), (aiokafka.Consumer, True)])
async def test_the_flow_is_stopped_while_it_seeks(
    kind: type[Any], is_active: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faust's own consumer is the control."""
    consumer = object.__new__(kind)
    consumer.flow_active = True
    consumer.can_resume_flow, consumer.suspend_flow = asyncio.Event(), asyncio.Event()
    consumer._read_offset, consumer._committed_offset = {}, {}
    seen: list[bool] = []

    async def seek_to_committed() -> Mapping[TP, int]:
        seen.append(consumer.flow_active)
        return {PARTITION: 7}

    monkeypatch.setattr(consumer, "seek_to_committed", seek_to_committed, raising=False)

    await consumer.perform_seek()

    assert seen == [is_active]
    assert consumer._read_offset == {PARTITION: 7}
