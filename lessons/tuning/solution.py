"""The exercise, solved."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lessons.question.records import ORDER


def choose_options() -> dict[str, str]:
    return {"spark.sql.shuffle.partitions": "2", "maxOffsetsPerTrigger": "100000"}


def count_orders(records: DataFrame) -> DataFrame:
    return (
        records.select(F.from_json("value", ORDER).alias("fields"))
        .select("fields.*")
        .withWatermark("ordered_at", "2 hours")
        .dropDuplicatesWithinWatermark(["order_id"])
        .select("ordered_at", F.expr("aggregate(lines.quantity, 0, (sum, n) -> sum + n) AS pieces"))
        .groupBy(F.window("ordered_at", "1 hour"))
        .agg(F.count("*").alias("orders"), F.sum("pieces").alias("pieces"))
        .select(F.col("window.start").alias("hour"), "orders", "pieces")
    )
