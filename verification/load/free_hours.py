"""Finds past hours without orders, by what analytics has counted."""

from datetime import UTC, datetime, timedelta

from test_support.system.clients import Hometown, Json
from verification.load.window import HOUR, Window, find_window


def find_free_window(hometown: Hometown, status: Json, lateness: timedelta) -> Window:
    """The first window after all counted orders. Raises NoWindow."""
    return find_window(find_newest_order(hometown, status, lateness), lateness, datetime.now(UTC))


def find_newest_order(hometown: Hometown, status: Json, lateness: timedelta) -> datetime | None:
    """An instant that no counted order is newer than; None when there are no orders."""
    newest = [datetime.fromisoformat(hour) + HOUR for hour in list_used_hours(hometown)]
    if status["watermark"] is not None:
        newest.append(datetime.fromisoformat(status["watermark"]) + lateness)
    return max(newest, default=None)


def list_used_hours(hometown: Hometown) -> list[str]:
    """All hours with local purchases."""
    used: list[str] = []
    query: dict[str, object] = {}
    while True:
        page = hometown.list_hours(**query)
        used += [hour["hour"] for hour in page["hours"]]
        if page["next"] is None:
            return used
        query = {"after": page["next"]}
