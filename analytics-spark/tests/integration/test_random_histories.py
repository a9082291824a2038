"""Random histories through the real thing: the cells are those of a plain query, however it is cut.

`make differential` tries more and larger ones.
"""

import pytest
from pyspark.sql import SparkSession

from analytics_spark.settings import JobSettings
from verification.differential.history_trial import Setup, try_history
from verification.differential.random_history import RandomHistory


def test_the_cells_are_those_of_a_plain_query(spark: SparkSession, settings: JobSettings) -> None:
    setup = Setup(records_per_trigger=1_000_000, shuffle_partitions=1, buckets=1)

    outcome = try_history(spark, settings, RandomHistory(1, 3_000), setup)

    assert outcome.wrong == []
    assert outcome.counted > 1_500
    assert outcome.bad > 0


@pytest.mark.verify(part="differential")
def test_in_pieces_too_and_a_wrong_answer_would_be_seen(
    spark: SparkSession, settings: JobSettings
) -> None:
    """In pieces, orders come too late: an oracle that waits for all of them has other cells."""
    setup = Setup(records_per_trigger=300, shuffle_partitions=2, buckets=8)

    outcome = try_history(spark, settings, RandomHistory(3, 1_500), setup)

    assert outcome.wrong == []
    assert outcome.counted > 750
    assert outcome.bad > 0
    assert outcome.late > 0
    assert outcome.blind > 0
