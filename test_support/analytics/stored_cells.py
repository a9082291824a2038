"""The cells of a small job in the tables, as if its batches had been committed there."""

from datetime import datetime

import psycopg

from analytics_spark.job.cells import KEY, SALE_KEY, VALUES
from test_support.analytics.small_job import SmallJob

INSERT_EPOCH = """
    INSERT INTO epochs (
        query_id, batch_id, buckets, watermark, trace_id,
        counted, late, duplicates, cancellations, ignored, bad
    )
    VALUES (gen_random_uuid(), 0, 4, %s, '', 0, 0, 0, 0, 0, 0)
"""

INSERT_CELL = f"""
    INSERT INTO cells ({", ".join(KEY + VALUES)})
    VALUES (to_timestamp(%s / 1000.0), {", ".join("%s" for _ in KEY[1:] + VALUES)})
"""

INSERT_SALE = f"""
    INSERT INTO sales ({", ".join(SALE_KEY + VALUES)})
    VALUES (to_timestamp(%s / 1000.0), {", ".join("%s" for _ in SALE_KEY[1:] + VALUES)})
"""


def store(connection: psycopg.Connection, job: SmallJob, watermark: datetime | None) -> None:
    """Fill empty tables."""
    connection.execute(INSERT_EPOCH, [watermark])
    for cell, amounts in job.cells().items():
        connection.execute(INSERT_CELL, cell + amounts)
    for sale, amounts in job.sales().items():
        connection.execute(INSERT_SALE, sale + amounts)
