"""Where the answers of Faust and Spark differ, and the possible reasons."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from analytics_faust.buyers import NOTHING, Totals


class Reason(StrEnum):
    """Why this program counts something else than Spark, or not yet the same."""

    MOVE = "move"
    CORRECTED_ORIGIN = "corrected-origin"
    ORDER_BEFORE_USER = "order-before-user"
    LATE_ORDER = "late-order"
    NOT_READ_YET = "not-read-yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    what: str
    here: str
    spark: str


EXPLANATIONS: Mapping[Reason, Explanation] = {
    Reason.MOVE: Explanation(
        what="A user moves or is deleted, and orders from before are read after it; or it is"
        " announced late.",
        here="Joins an order with the address that arrived last, whatever time it is valid from.",
        spark="Joins an order with the address as of the order's own time, and corrects the count"
        " when the past becomes known.",
    ),
    Reason.CORRECTED_ORIGIN: Explanation(
        what="An item's origin is corrected for the past.",
        here="Keeps the counts, and uses the new origin from its arrival on.",
        spark="Moves the purchases it affects, while they are newer than the watermark.",
    ),
    Reason.ORDER_BEFORE_USER: Explanation(
        what="An order arrives before its user or its item is known.",
        here="Finds nothing in the table, and the order is permanently lost.",
        spark="Keeps the order, and counts it when the user or the item arrives.",
    ),
    Reason.LATE_ORDER: Explanation(
        what="An order arrives long after its hour.",
        here="Has no watermark: counts it whenever it arrives, and no hour is ever final.",
        spark="Counts it while it is newer than the watermark; after that drops it, and counts it"
        " as late.",
    ),
    Reason.NOT_READ_YET: Explanation(
        what="One of the two has read further than the other.",
        here="Counts a record a moment after it is published.",
        spark="Counts records in batches.",
    ),
}

LESS_HERE = (
    Reason.MOVE,
    Reason.CORRECTED_ORIGIN,
    Reason.ORDER_BEFORE_USER,
    Reason.NOT_READ_YET,
)
MORE_HERE = (Reason.MOVE, Reason.CORRECTED_ORIGIN, Reason.LATE_ORDER, Reason.NOT_READ_YET)
AS_MANY = (Reason.MOVE, Reason.CORRECTED_ORIGIN, Reason.NOT_READ_YET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    hour: datetime
    here: Totals
    spark: Totals

    @property
    def reasons(self) -> Sequence[Reason]:
        """The reasons that fit the direction of the difference."""
        if self.here.purchases < self.spark.purchases:
            return LESS_HERE
        return MORE_HERE if self.here.purchases > self.spark.purchases else AS_MANY


def find_differences(
    here: Mapping[datetime, Totals], spark: Mapping[datetime, Totals]
) -> Sequence[Difference]:
    """The hours whose totals differ; an hour that one side does not list has zeros there."""
    both = (
        Difference(hour=hour, here=here.get(hour, NOTHING), spark=spark.get(hour, NOTHING))
        for hour in sorted(here.keys() | spark.keys())
    )
    return [each for each in both if each.here != each.spark]
