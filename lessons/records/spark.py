"""One record at a time in Spark: each row of a batch leads to none, one or more rows."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

ALERT_AMOUNT = "10000.00"


def copy_lines(records: DataFrame) -> DataStreamWriter:
    """The lines of a file through a topic: each is equal to the byte."""
    return records.select("key", F.col("value").alias("line")).writeStream.outputMode("append")


def copy_stripped_lines(records: DataFrame) -> DataStreamWriter:
    """Wrong: white space is a part of a line."""
    return copy_lines(records.withColumn("value", F.trim("value")))


def change_case(records: DataFrame) -> DataStreamWriter:
    """The whole text in upper case, the names of its fields as well."""
    return records.select(F.upper("value").alias("value")).writeStream.outputMode("append")


def split_words(records: DataFrame) -> DataStreamWriter:
    """A record of any of the topics leads to a row for each of its words."""
    words = F.explode(F.split("value", " "))
    return records.select("topic", words.alias("word")).writeStream.outputMode("append")


def branch(records: DataFrame) -> DataStreamWriter:
    """Orders above an amount go elsewhere. Amounts are decimals: texts sort by their characters."""
    is_large = F.col("value").cast("decimal(12, 2)") > F.lit(ALERT_AMOUNT).cast("decimal(12, 2)")
    return to_branches(records, is_large)


def branch_by_text(records: DataFrame) -> DataStreamWriter:
    """Wrong: as a text, 9999.99 is above 10000.00."""
    return to_branches(records, F.col("value") > F.lit(ALERT_AMOUNT))


def to_branches(records: DataFrame, is_large: Column) -> DataStreamWriter:
    to = F.when(is_large, "alerts").otherwise("orders")
    return records.select(
        "key", F.col("value").alias("amount"), to.alias("to")
    ).writeStream.outputMode("append")
