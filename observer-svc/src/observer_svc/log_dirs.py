"""The disks of the brokers, as they report them: DescribeLogDirs, which aiokafka does not have.

https://kafka.apache.org/protocol#The_Messages_DescribeLogDirs; the sizes came with KIP-827.
"""

from collections.abc import Mapping
from typing import Any

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

from observer_svc.groups import REQUEST_MILLISECONDS_MAX
from shared.runtime.brokers import Brokers
from shared.runtime.disks import Disk

DESCRIBE_LOG_DIRS = 35
NO_ERROR = 0
UNKNOWN_BYTES = -1
"""Of a disk that the broker cannot see."""


class DescribeLogDirsResponse_v4(Response):  # type: ignore[misc]
    API_KEY = DESCRIBE_LOG_DIRS
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("error_code", Int16),
        (
            "results",
            CompactArray(
                ("error_code", Int16),
                ("log_dir", CompactString("utf-8")),
                (
                    "topics",
                    CompactArray(
                        ("name", CompactString("utf-8")),
                        (
                            "partitions",
                            CompactArray(
                                ("partition_index", Int32),
                                ("partition_size", Int64),
                                ("offset_lag", Int64),
                                ("is_future_key", Boolean),
                                ("tags", TaggedFields),
                            ),
                        ),
                        ("tags", TaggedFields),
                    ),
                ),
                ("total_bytes", Int64),
                ("usable_bytes", Int64),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class DescribeLogDirsRequest_v4(RequestStruct):  # type: ignore[misc]
    FLEXIBLE_VERSION = True
    API_KEY = DESCRIBE_LOG_DIRS
    API_VERSION = 4
    RESPONSE_TYPE = DescribeLogDirsResponse_v4
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                ("partitions", CompactArray(Int32)),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class DescribeLogDirs(Request[DescribeLogDirsRequest_v4]):  # type: ignore[misc]
    """Of no topic: the folders alone, with the sizes of their disks."""

    API_KEY = DESCRIBE_LOG_DIRS

    def build(
        self, request_struct_class: type[DescribeLogDirsRequest_v4]
    ) -> DescribeLogDirsRequest_v4:
        return request_struct_class([], {})


async def read_disks(brokers: Brokers) -> Mapping[str, Disk]:
    """The fullest disk of each broker, by a name such as `kafka-1`. Raises KafkaError."""
    client = AIOKafkaClient(
        **brokers.options, client_id="observer", request_timeout_ms=REQUEST_MILLISECONDS_MAX
    )
    await client.bootstrap()
    try:
        return {
            f"kafka-{broker.nodeId}": disk
            for broker in client.cluster.brokers()
            if (disk := find_fullest(await ask(client, broker.nodeId)))
        }
    finally:
        await client.close()


async def ask(client: AIOKafkaClient, node: int) -> Any:
    """The results of one broker; none of one that does not respond now."""
    if not await client.ready(node):
        return []
    response = await client.send(node, DescribeLogDirs())
    return response.results


def find_fullest(results: Any) -> Disk | None:
    disks = [
        Disk(free=usable, size=total)
        for error, _, _, total, usable, _ in results
        if error == NO_ERROR and total > 0 and usable > UNKNOWN_BYTES
    ]
    return min(disks, key=lambda disk: disk.free / disk.size, default=None)
