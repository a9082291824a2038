"""Exercise: enrich views of pages with what their user had searched for, and with a profile.

Replace the hole. `views` and `searches` are streams with the columns topic, key (the user), value
(the page, the search) and time; `profiles(table)` are the rows user, name, zip, as they are now.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lessons.joins.spark import Table, of, profiles

CASES = ("clicks",)
HINTS = {
    "enrich_clicks": "A left join of two streams needs a watermark on both (1 second will do) and"
    " a bound in its condition: v.time BETWEEN s.time - INTERVAL 1 SECOND AND s.time + INTERVAL"
    ' 1 SECOND. With views.alias("v"), F.expr can name the columns of either. Its output mode is'
    ' "append". A left join with a table needs none of this.',
}


def enrich_clicks(records: DataFrame, table: Table) -> DataStreamWriter:
    """Each view with the searches of its user at most a second before or after it, and with the
    profile of its user: user, name, zip, search, page.

    A view without a search leads to a row as well, when no search can match it any more; so does
    one without a profile.
    """
    views, searches = of("views", records), of("searches", records)
    raise NotImplementedError
