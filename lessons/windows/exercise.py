"""Exercise: count clicks in windows of time, first with corrections, then with one row at the end.

Replace both holes. `records` is a stream with the columns topic, key, value (texts) and time; what
is returned is a query that has not been started, such as rows.writeStream.outputMode("update").
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

CASES = ("tumbling", "final")
HINTS = {
    "count_tumbling": "Group by the key and by F.window; its column has the fields start and end."
    " withWatermark, before the groups, says how far a record may be behind the newest one: what is"
    ' later is dropped. outputMode("update") emits a window each time that it changes.',
    "count_final": 'outputMode("append") emits a window once, when the watermark has passed its'
    " end, because of a record that is later than the end by the grace.",
}


def count_tumbling(records: DataFrame, grace: int = 60) -> DataStreamWriter:
    """The number of records of each key, each 5 seconds of their time: key, start, end, count.

    A row comes each time that the number changes. A record that is up to `grace` seconds behind the
    newest one still counts; one that is later than its window by more is dropped.
    """
    raise NotImplementedError


def count_final(records: DataFrame, grace: int = 60) -> DataStreamWriter:
    """The same, with one row of each window, when no record can change it any more."""
    raise NotImplementedError
