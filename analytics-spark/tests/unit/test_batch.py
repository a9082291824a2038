"""Times of a batch."""

from datetime import UTC, datetime

from analytics_spark.job.batch import to_instant


def test_the_watermark_of_the_first_batch_is_none() -> None:
    assert to_instant(0) is None
    assert to_instant(None) is None
    assert to_instant(1_500) == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
