"""The process that Spark forks its Python workers from, with all imports done before the forks.

Each worker would otherwise import pandas, pyarrow and the operator for itself: a second of a cold
start and many megabytes, for every one of them.
"""

import sys

# Spark's own archive stands before the package that is installed, and what is imported from an
# archive is compiled each time.
sys.path = [path for path in sys.path if not path.endswith(".zip")]

import pandas  # type: ignore[import-untyped]  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

import analytics_spark.pack  # noqa: E402
import analytics_spark.processor  # noqa: E402, F401

if __name__ == "__main__":
    manager()
