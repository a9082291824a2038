"""Orders as columns, read from JSON by Spark or by a function of Python."""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lessons.question.records import ORDER, read

ORDER_TOPIC = "orders"


def read_in_spark(records: DataFrame) -> DataFrame:
    """Read orders without Python."""
    return read(ORDER_TOPIC, ORDER, records)


def read_in_python(records: DataFrame) -> DataFrame:
    """Read each order in a process of Python, from which it comes back."""
    fields = F.udf(parse_order, ORDER, useArrow=False)("value").alias("fields")
    return records.select(fields).select("fields.*")


def parse_order(value: str) -> Mapping[str, Any]:
    """Parse JSON."""
    order: Mapping[str, Any] = json.loads(value)
    lines = [{**line, "unit_price": Decimal(line["unit_price"])} for line in order["lines"]]
    return {**order, "ordered_at": datetime.fromisoformat(order["ordered_at"]), "lines": lines}
