"""Finds past hours in which nobody has ordered yet, by what analytics has counted."""

from datetime import UTC, datetime, timedelta

from test_support.system.clients import Hometown, Json
from verification.load.window import HOUR, Window, window_after


def free_window(hometown: Hometown, status: Json, lateness: timedelta) -> Window:
    """The first one after all orders that are counted. Raises NoWindow."""
    return window_after(newest_order(hometown, status, lateness), lateness, datetime.now(UTC))


def newest_order(hometown: Hometown, status: Json, lateness: timedelta) -> datetime | None:
    """No order that is counted is newer; None when there is none."""
    newest = [datetime.fromisoformat(hour) + HOUR for hour in hours_used(hometown)]
    if status["watermark"] is not None:
        newest.append(datetime.fromisoformat(status["watermark"]) + lateness)
    return max(newest, default=None)


def hours_used(hometown: Hometown) -> list[str]:
    """All hours with local purchases."""
    used: list[str] = []
    query: dict[str, object] = {}
    while True:
        page = hometown.list_hours(**query)
        used += [hour["hour"] for hour in page["hours"]]
        if page["next"] is None:
            return used
        query = {"after": page["next"]}
