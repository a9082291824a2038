"""The process that Spark forks its Python workers from, with all imports done before the forks.

Each worker would otherwise import pandas, pyarrow and the operator for itself: a second of a cold
start and many megabytes, for every one of them.
"""

import pandas  # type: ignore[import-untyped]  # noqa: F401
from pyspark.daemon import manager

import analytics_spark.job.pack
import analytics_spark.job.processor  # noqa: F401

if __name__ == "__main__":
    manager()
