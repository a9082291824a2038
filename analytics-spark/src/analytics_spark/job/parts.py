"""The state of one bucket, in parts: all of it is one variable of Spark's.

For each variable Spark analyses an encoder and generates code in each task of each batch.
"""

from typing import Self

from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

STATE_NAME = "parts"
NUMBER = StructType([StructField("number", LongType())])
BLOB = StructType([StructField("blob", BinaryType())])

USERS_PART = -1
ITEMS_PART = -2
INDEX_PART = -3
"""Of the chunks of orders, which are the parts from 0 on."""


class Parts:
    """Blobs by number."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    @classmethod
    def open(cls, handle: StatefulProcessorHandle) -> Self:
        return cls(handle.getMapState(STATE_NAME, NUMBER, BLOB))

    def get(self, number: int) -> bytes | None:
        value = self._state.getValue((number,))
        return value[0] if value else None

    def put(self, number: int, blob: bytes) -> None:
        self._state.updateValue((number,), (blob,))

    def remove(self, number: int) -> None:
        self._state.removeKey((number,))
