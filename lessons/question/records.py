"""The records of the shop as columns."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

USER = "user_id string, address string, effective_at timestamp"
ITEM = "item_id string, origin string, effective_at timestamp"
ORDER = (
    "order_id string, user_id string, ordered_at timestamp,"
    " lines array<struct<item_id: string, quantity: int, unit_price: decimal(12, 2)>>"
)


def read_lines(records: DataFrame, grace: int) -> DataFrame:
    """One row for each line of an order, with a watermark by the time of the order."""
    return to_lines(read("orders", ORDER, records), grace)


def to_lines(orders: DataFrame, grace: int) -> DataFrame:
    """Make the rows of `read_lines` of orders whose columns are read already."""
    return (
        orders.withWatermark("ordered_at", f"{grace} seconds")
        .select("*", F.posexplode("lines").alias("line", "fields"))
        .select("order_id", "user_id", "ordered_at", "line", "fields.*")
    )


def read(topic: str, schema: str, records: DataFrame) -> DataFrame:
    fields = F.from_json("value", schema).alias("fields")
    return records.where(F.col("topic") == topic).select(fields).select("fields.*")
