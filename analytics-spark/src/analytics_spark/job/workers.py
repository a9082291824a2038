"""The process that Spark forks its Python workers from, with all imports done before the forks.

Otherwise each worker would import pandas, pyarrow and the operator itself, which takes a second of
a cold start and many megabytes.
"""

import gc

import pandas  # type: ignore[import-untyped]  # noqa: F401
from pyspark.daemon import manager

import analytics_spark.job.pack
import analytics_spark.job.processor
import analytics_spark.job.source  # noqa: F401

if __name__ == "__main__":
    # Each worker collects garbage after each task. What was imported is none: frozen, it is not
    # looked at again, which is most of what a worker does in a small batch.
    gc.collect()
    gc.freeze()
    manager()
