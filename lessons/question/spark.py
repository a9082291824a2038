"""The question in plain Structured Streaming: two joins as of the time of an order, two aggregates.

An hour is answered once, when the watermark has passed it: a row cannot be corrected afterwards.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lessons.question.records import ITEM, USER, read, read_lines

Choice = Callable[[str, str], Column]
"""Of the versions that had begun, the value of one, by the time since when it is valid."""


def count_local_buyers(records: DataFrame, grace: int = 7200) -> DataStreamWriter:
    """For every hour, the users that bought an item from where they lived when they ordered it."""
    return emit(count(records, read_lines(records, grace), last_known))


def count_by_first_address(records: DataFrame, grace: int = 7200) -> DataStreamWriter:
    """Wrong: a user lives where they lived first, whatever became of them."""
    return emit(count(records, read_lines(records, grace), first_known))


def emit(hours: DataFrame) -> DataStreamWriter:
    """Emit each hour once, when no order can change it."""
    return hours.writeStream.outputMode("append")


def count(records: DataFrame, lines: DataFrame, choose: Choice) -> DataFrame:
    """Join lines of orders with users and items in `records`, and count the local buyers."""
    users, items = read("users", USER, records), read("items", ITEM, records)
    # Every version that had begun at the time of the order; then one of them for each line. Without
    # a watermark on users and items, Spark keeps all of both sides permanently.
    known = lines.join(
        users.withColumnsRenamed({"user_id": "buyer", "effective_at": "lives_since"}),
        F.expr("user_id = buyer AND lives_since <= ordered_at"),
    ).join(
        items.withColumnsRenamed({"item_id": "item", "effective_at": "made_since"}),
        F.expr("item_id = item AND made_since <= ordered_at"),
    )
    purchases = known.groupBy(
        F.window("ordered_at", "1 hour"), "order_id", "line", "user_id", "quantity", "unit_price"
    ).agg(
        choose("address", "lives_since").alias("address"),
        choose("origin", "made_since").alias("origin"),
    )
    # The same order twice is in one group, so that it counts once.
    return (
        purchases.where("address = origin")
        .groupBy("window")
        .agg(
            F.size(F.collect_set("user_id")).alias("local_buyers"),
            F.count("*").alias("purchases"),
            F.sum("quantity").alias("quantity"),
            F.sum(F.expr("CAST(quantity * unit_price * 100 AS bigint)")).alias("cents"),
        )
        .select(
            F.col("window.start").alias("hour"), "local_buyers", "purchases", "quantity", "cents"
        )
    )


def last_known(value: str, since: str) -> Column:
    return F.max_by(value, since)


def first_known(value: str, since: str) -> Column:
    return F.min_by(value, since)
