"""Joins in Spark: streams with streams within a time, streams with a table as it is now.

A table is read from its topic for each batch: `table(topic)` has the records that it has then.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

Table = Callable[[str], DataFrame]


def enrich_clicks(records: DataFrame, table: Table) -> DataStreamWriter:
    """Each view with the search within a second of it, and with the profile of its user.

    A view without a search comes when no search can match it any more: when the watermark, which is
    that of the slower stream, has passed.
    """
    return enrich_within("1 SECOND", records, table)


def enrich_at_any_time(records: DataFrame, table: Table) -> DataStreamWriter:
    """Wrong: every search of the user matches, and the state is kept for a day."""
    return enrich_within("1 DAY", records, table)


def enrich_within(distance: str, records: DataFrame, table: Table) -> DataStreamWriter:
    views = of("views", records).withWatermark("time", "1 second").alias("v")
    searches = of("searches", records).withWatermark("time", "1 second").alias("s")
    condition = (
        "v.key = s.key"
        f" AND v.time BETWEEN s.time - INTERVAL {distance} AND s.time + INTERVAL {distance}"
    )
    return (
        views.join(searches, F.expr(condition), "left_outer")
        .select(
            F.col("v.key").alias("user"),
            F.col("v.value").alias("page"),
            F.col("s.value").alias("search"),
        )
        .join(profiles(table), "user", "left_outer")
        .select("user", "name", "zip", "search", "page")
        .writeStream.outputMode("append")
    )


def count_by_zip(records: DataFrame, table: Table) -> DataStreamWriter:
    """Views by the zip code of their user: the key changes, so Spark shuffles the rows."""
    return (
        of("views", records)
        .withColumnRenamed("key", "user")
        .join(profiles(table), "user", "left_outer")
        .groupBy("zip")
        .count()
        .writeStream.outputMode("update")
    )


def profiles(table: Table) -> DataFrame:
    """The last profile of each user."""
    last = table("profiles").groupBy("key").agg(F.max_by("value", "offset").alias("value"))
    profile = F.from_json("value", "name string, zip string")
    return last.select(F.col("key").alias("user"), profile.alias("profile")).select(
        "user", "profile.*"
    )


def join_table(records: DataFrame, table: Table) -> DataStreamWriter:
    """Orders with the address of their user. A user who moves leads to no row."""
    addresses = table("users").groupBy("key").agg(F.max_by("value", "offset").alias("address"))
    return (
        of("orders", records)
        .join(addresses, "key", "left_outer")
        .select(F.col("key").alias("user"), F.col("value").alias("order"), "address")
        .writeStream.outputMode("append")
    )


def join_tables(records: DataFrame) -> DataStreamWriter:
    """Price and stock of each item: a change of either leads to a row, once both are known."""
    return (
        records.groupBy(F.col("key").alias("item"))
        .agg(last_of("prices").alias("price"), last_of("stocks").alias("stock"))
        .where("price IS NOT NULL AND stock IS NOT NULL")
        .writeStream.outputMode("update")
    )


def join_foreign_key(records: DataFrame) -> DataStreamWriter:
    """Orders, each with the address of its user, as a table: a user who moves changes all of them.

    The state of a user has all of their orders.
    """
    is_order = F.col("topic") == "orders"
    order = F.from_json("value", "order string, user string")
    return (
        records.groupBy(F.when(is_order, order["user"]).otherwise(F.col("key")).alias("user"))
        .agg(
            last_of("users").alias("address"),
            F.collect_set(F.when(is_order, order["order"])).alias("orders"),
        )
        .where("address IS NOT NULL")
        .select("user", "address", F.explode("orders").alias("order"))
        .writeStream.outputMode("update")
    )


def join_global(records: DataFrame, table: Table) -> DataStreamWriter:
    """Orders with the origin of their item: every task has all items, and no order moves."""
    return join_items(F.broadcast(origins(table)), records)


def join_repartitioned(records: DataFrame, table: Table) -> DataStreamWriter:
    """The same with both sides shuffled by the item: for more items than a task can hold."""
    return join_items(origins(table).hint("shuffle_hash"), records)


def join_items(items: DataFrame, records: DataFrame) -> DataStreamWriter:
    return (
        of("orders", records)
        .withColumnRenamed("value", "item")
        .join(items, "item", "inner")
        .select(F.col("key").alias("user"), "item", "origin")
        .writeStream.outputMode("append")
    )


def origins(table: Table) -> DataFrame:
    """The last origin of each item."""
    last = table("items").groupBy("key").agg(F.max_by("value", "offset").alias("origin"))
    return last.withColumnRenamed("key", "item")


def of(topic: str, records: DataFrame) -> DataFrame:
    return records.where(F.col("topic") == topic)


def last_of(topic: str) -> Column:
    """The newest value of one topic, in a group of records of several."""
    is_of = F.col("topic") == topic
    return F.max_by(F.when(is_of, F.col("value")), F.when(is_of, F.col("time")))
