"""One order is followed by its id, by what was caused by it, and by the offsets of its records."""

import json
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

import pytest

from fetching.errors import Failure
from local_stack import logs, order_log
from local_stack.order_log import LoggedLine
from local_stack.run_folder import RunFolder

ORDER, OTHER, USER = (f"0190a000-0000-7000-8000-{number:012}" for number in (1, 2, 3))
STORY, OTHER_STORY = (f"0190b000-0000-7000-8000-{number:012}" for number in (1, 2))


def line(process: str, second: int, message: str, **fields: Any) -> LoggedLine:
    first = {"time": f"2026-01-01T00:00:{second:02}Z", "level": "info", "message": message}
    return LoggedLine(process, json.dumps(first | fields, separators=(",", ":")))


PLACED = line("orders-api", 1, "recorded", stream_id=ORDER, correlation_id=STORY)
OFFSETS = {"orders.v1": {"2": [7, 9]}, "users.v1": {"0": [0, 4]}}
PUBLISHED = line("orders-relay", 2, "published", offsets=OFFSETS)
CONSUMED = line(
    "users-worker",
    3,
    "consumed",
    stream_id=ORDER,
    correlation_id=STORY,
    topic="orders.v1",
    partition=2,
    offset=8,
)
RESERVED = line("users-worker", 4, "recorded", stream_id=USER, correlation_id=STORY)
COUNTED = line("analytics-job", 5, "counted", offsets={"orders.v1": {"2": [0, 9]}})
EARLIER = line("orders-relay", 1, "published", offsets={"orders.v1": {"2": [0, 8]}})
LATER = line("orders-relay", 6, "published", offsets={"orders.v1": {"2": [9, 99]}})
OF_ANOTHER = line("orders-api", 1, "recorded", stream_id=OTHER, correlation_id=OTHER_STORY)
OF_THE_USER = line("users-api", 1, "recorded", stream_id=USER, correlation_id=OTHER_STORY)
OF_A_LIBRARY = LoggedLine("kafka", f"{{no json, with {ORDER}")

ABOUT = [PLACED, PUBLISHED, CONSUMED, RESERVED, COUNTED]


def found_in(lines: Iterable[LoggedLine], order_id: str = ORDER) -> list[LoggedLine]:
    lines = list(lines)
    return list(order_log.find(lambda: lines, order_id))


def test_all_processes_that_had_to_do_with_an_order_are_shown_by_time() -> None:
    others = [EARLIER, LATER, OF_ANOTHER, OF_THE_USER, OF_A_LIBRARY]

    assert found_in([*reversed(ABOUT), *others]) == ABOUT


def test_of_batches_with_the_same_offset_the_first_after_the_order_counts() -> None:
    """Topics that were lost have been made again, before and after."""
    before, after = (
        [
            line("orders-relay", second, "published", offsets=OFFSETS),
            line("analytics-job", second, "counted", offsets=OFFSETS),
        ]
        for second in (0, 7)
    )

    assert found_in([*before, *ABOUT, *after]) == ABOUT


def test_a_line_that_mentions_an_order_brings_no_story_of_its_own() -> None:
    fields = {"stream_id": OTHER, "correlation_id": OTHER_STORY}
    mention = line("orders-worker", 9, "recorded", before=ORDER, **fields)

    assert found_in([*ABOUT, OF_ANOTHER, mention]) == [*ABOUT, mention]


def test_an_order_that_was_not_consumed_is_shown_as_far_as_it_came() -> None:
    assert found_in([PLACED, PUBLISHED]) == [PLACED]


def test_an_order_that_no_log_knows_is_an_error() -> None:
    with pytest.raises(Failure, match=f"no line of a log is about an order {OTHER}"):
        found_in(ABOUT, OTHER)


def test_an_id_that_is_none_is_an_error() -> None:
    with pytest.raises(Failure, match="order=seven is no id of an order"):
        found_in(ABOUT, "seven")


def test_an_id_may_be_in_capitals() -> None:
    assert found_in(ABOUT, ORDER.upper()) == ABOUT


def test_a_rotated_log_is_read_before_its_successor(folder: RunFolder) -> None:
    log = folder.log_of("users-api")
    log.with_name("users-api.log.1").write_text("old\n")
    log.write_text("new\n")
    folder.log_of("setup").write_text("of a tool\n")

    assert list(logs.read_all(folder)) == [
        LoggedLine("users-api", "old"),
        LoggedLine("users-api", "new"),
    ]


@pytest.mark.parametrize("more", [{"name": "users-api"}, {"follow": True}])
def test_an_order_is_asked_for_alone(more: dict[str, Any]) -> None:
    asked = Namespace(**{"order": ORDER, "name": None, "follow": False} | more)

    with pytest.raises(Failure, match="leave out the other options"):
        logs.show_order(lambda: ABOUT, asked)


def test_lines_of_an_order_are_shown_with_their_process(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.show_order(lambda: ABOUT, Namespace(order=ORDER, name=None, follow=False))

    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == [each.process for each in ABOUT]
    assert shown[0].endswith(PLACED.text)
