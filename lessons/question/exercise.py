"""Exercise: the question of the shop, for every hour once, when no order can change it any more.

Replace the hole. `users` has the columns user_id, address, effective_at (since when they live
there); `items` has item_id, origin, effective_at; `lines` has a row for each line of an order:
order_id, line (its number), user_id, item_id, quantity, unit_price, ordered_at. Its watermark is
`grace` behind the latest order.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lessons.question.records import ITEM, USER, read, read_lines

CASES = ("sample",)
HINTS = {
    "count_local_buyers": "Join each line with every version of its user that had begun"
    " (lives_since <= ordered_at), and so with its item; rename the columns of users and items"
    ' before. Then group by F.window("ordered_at", "1 hour"), order_id, line and what the rest'
    ' needs, and take the last version: F.max_by("address", "lives_since"). An order that comes'
    ' twice is in one group. Count these groups in a second groupBy, of "window". A stream has no'
    ' distinct count: take F.size of F.collect_set. The output mode is "append".',
}


def count_local_buyers(records: DataFrame, grace: int = 7200) -> DataStreamWriter:
    """Of each hour, the users that bought an item from where they lived when they ordered it, their
    purchases (lines), pieces and cents: hour, local_buyers, purchases, quantity, cents.

    The same order can come twice, and counts once. Some users move, some are unknown.
    """
    users, items = read("users", USER, records), read("items", ITEM, records)
    lines = read_lines(records, grace)
    raise NotImplementedError
