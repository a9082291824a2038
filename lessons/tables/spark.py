"""A topic as a stream and as a table in Spark: the aggregation of a group decides which."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter


def sum_changes(records: DataFrame) -> DataStreamWriter:
    """As a stream: each record is a change, and they add up."""
    return (
        records.groupBy("key")
        .agg(F.sum(F.col("value").cast("long")).alias("sum"), F.count("*").alias("records"))
        .writeStream.outputMode("update")
    )


def keep_last(records: DataFrame) -> DataStreamWriter:
    """As a table: each record replaces the one before of its key; without a value it deletes it."""
    last = F.max_by("value", "time").alias("last")
    return records.groupBy("key").agg(last).writeStream.outputMode("update")


def keep_last_number(records: DataFrame) -> DataStreamWriter:
    """Wrong: a value that cannot be read becomes NULL, and that means: delete it."""
    return keep_last(records.withColumn("value", F.expr("try_cast(value AS long)").cast("string")))


def count_words(records: DataFrame) -> DataStreamWriter:
    """Word count: split where no word is, in lower case, without `the`."""
    word = F.explode(F.split(F.lower("value"), r"\W+"))
    return count_each(records.select(word.alias("word")).where("word NOT IN ('', 'the')"))


def count_words_and_gaps(records: DataFrame) -> DataStreamWriter:
    """Wrong: a text that begins or ends with a separator has an empty word there."""
    word = F.explode(F.split(F.lower("value"), r"\W+"))
    return count_each(records.select(word.alias("word")).where("word <> 'the'"))


def count_each(words: DataFrame) -> DataStreamWriter:
    return words.groupBy("word").count().writeStream.outputMode("update")
