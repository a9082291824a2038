"""A batch with one order of Jack's, for tests of tables without Spark."""

from uuid import uuid4

import pyarrow as pa

from analytics_spark.job.batch import CellBatch, Tally
from analytics_spark.job.cells import DELTAS
from analytics_spark.job.orders import SAMPLES
from analytics_spark.job.records import BAD
from test_support.analytics.histories import HOUR
from test_support.analytics.small_job import milliseconds

BUCKETS = 8
QUERY_ID = str(uuid4())

JACK: dict[str, object] = {
    "hour": milliseconds(HOUR),
    "item_id": "iphone",
    "item_type": "phone",
    "address": "BJ",
    "gender": "male",
    "user_id": "Jack",
    "purchases": 1,
    "quantity": 3,
    "cents": 16_166_64,
}


def one_batch(batch_id: int, *deltas: dict[str, object]) -> CellBatch:
    return CellBatch(
        query_id=QUERY_ID,
        batch_id=batch_id,
        buckets=BUCKETS,
        offsets={"orders.v1": {"0": [0, batch_id]}},
        watermark=HOUR,
        latest_order_at=HOUR,
        tally=Tally(counted=1),
        deltas=pa.Table.from_pylist(list(deltas), DELTAS),
        samples=SAMPLES.empty_table(),
        bad_records=BAD.empty_table(),
    )
