"""A step has ended when nothing has been unread for several polls in a row."""

from collections.abc import Iterator

import pytest

from lessons import settling
from lessons.settling import SETTLED_POLLS, wait_until_settled


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "POLL_SECONDS", 0)


async def wait(found: Iterator[set[str]], seconds_max: float = 0) -> None:
    async def find() -> set[str]:
        return next(found)

    await wait_until_settled(find, "a reader", seconds_max)


async def test_what_is_read_at_all_polls_has_ended() -> None:
    await wait(iter([set()] * SETTLED_POLLS))


async def test_what_a_record_leads_to_is_waited_for() -> None:
    found = iter([set(), {"next"}, *[set()] * SETTLED_POLLS, {"after the end"}])

    await wait(found, seconds_max=60)

    assert list(found) == [{"after the end"}]


async def test_what_is_not_read_in_time_is_named() -> None:
    with pytest.raises(TimeoutError, match="not read by a reader: one, two"):
        await wait(iter([{"two", "one"}]))
