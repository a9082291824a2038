"""Faust's consumer, which delivers nothing while it seeks.

At the end of a rebalance Faust resumes the partitions first, and then seeks to the committed
offsets. What is fetched between the two is delivered, and skipped by streams that are not resumed
yet; Faust notes it as read, and drops it when it comes again after the seek. The offset of its
partition is never committed again, and the records are lost until the next start.
"""

import faust
from faust.transport.drivers import aiokafka
from faust.types.transports import TransportT


class Consumer(aiokafka.Consumer):
    async def perform_seek(self) -> None:
        """Seek to the committed offsets; its caller resumes the flow."""
        self.stop_flow()
        await super().perform_seek()


class Transport(aiokafka.Transport):
    Consumer = Consumer


class App(faust.App):
    def _new_transport(self) -> TransportT:
        return Transport(self.conf.broker_consumer, self)
