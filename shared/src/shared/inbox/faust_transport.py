"""Faust with two consumers derived from its own.

`Consumer` commits past a repeat. Faust keeps the offsets of acknowledged records in a list, and
commits up to the first gap in it. A record that is delivered again while its first offset is being
committed gets into the list twice. Faust takes the repeat for a gap: each commit then proceeds by a
single record, so that the program seems to stall, and a restart reads all of them again
(https://github.com/robinhood/faust/issues/625).

`DirectConsumer` also delivers without a detour. Faust delivers each record in a race of four tasks,
so that a rebalance can interrupt a delivery that waits for room in the queue of a stream. That
takes a sixth of the time of a small message. While there is room a delivery does not wait, and
there is nothing to interrupt.
"""

from collections.abc import Coroutine
from typing import Any, ClassVar

import faust
from faust.transport.drivers import aiokafka
from faust.types import TP
from faust.types.transports import TransportT


class Consumer(aiokafka.Consumer):
    def _new_offset(self, tp: TP) -> int | None:
        """Find the offset to commit, among offsets that are not committed, each once."""
        acked, committed = self._acked[tp], self._committed_offset[tp] or 0
        acked[:] = {offset for offset in acked if offset >= committed}
        return super()._new_offset(tp)


class DirectConsumer(Consumer):
    async def wait_first(self, *coros: Any, **options: Any) -> Any:
        """Deliver a record, unless the flow is suspended meanwhile."""
        delivery: Coroutine[Any, Any, None]
        delivery, suspension = coros
        if not self.app.flow_control.is_active() or self._is_full():
            return await super().wait_first(delivery, suspension, **options)
        suspension.close()
        return await delivery

    def _is_full(self) -> bool:
        return any(topic.queue.full() for topic in self.app.topics)


class App(faust.App):
    """An application with a `Consumer`."""

    consumer_class: ClassVar[type[Consumer]] = Consumer

    def _new_transport(self) -> TransportT:
        transport = aiokafka.Transport(self.conf.broker_consumer, self)
        transport.Consumer = self.consumer_class  # type: ignore[misc]  # Faust's is of the class
        return transport


class WorkerApp(App):
    """An application without tables, with a `DirectConsumer`."""

    consumer_class = DirectConsumer

    def _create_directories(self) -> None:
        """Create none: a worker keeps nothing on a disk, and needs no folder that it can write."""
