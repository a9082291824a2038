"""What a person reads about topics that are not as declared."""

from dataclasses import replace

import pytest

from shared.messaging.topic_differences import (
    DeclaredTopic,
    PresentTopic,
    find_differences,
    find_too_small,
)

DECLARED = DeclaredTopic(
    name="orders.v1", partitions=4, replicas=1, settings={"retention.ms": "-1"}, is_keyed=True
)
PRESENT = PresentTopic(partitions=4, replicas=1, settings={"retention.ms": "-1"})


def differences(present: PresentTopic) -> list[str]:
    return list(find_differences([DECLARED], {"orders.v1": present, "of-others": PRESENT}))


def test_a_topic_as_declared_is_not_mentioned_nor_are_those_of_others() -> None:
    assert differences(PRESENT) == []


def test_a_missing_topic_is_named_with_the_command_that_creates_it() -> None:
    [line] = find_differences([DECLARED], {})

    assert line == "orders.v1 is missing: `make topics` creates it"


@pytest.mark.parametrize(
    ("present", "line"),
    [
        (replace(PRESENT, partitions=6), "orders.v1 has 6 partitions, not 4"),
        (replace(PRESENT, replicas=3), "orders.v1 has 3 replicas, not 1"),
        (
            replace(PRESENT, settings={"retention.ms": "60000"}),
            "orders.v1 has retention.ms=60000, not retention.ms=-1",
        ),
        (
            replace(PRESENT, settings={}),
            "orders.v1 has the default retention.ms, not retention.ms=-1",
        ),
        (
            replace(PRESENT, settings={"retention.ms": "-1", "segment.bytes": "1048576"}),
            "orders.v1 has segment.bytes=1048576, not the default segment.bytes",
        ),
    ],
    ids=["partitions", "replicas", "a setting", "no setting", "a setting that is not declared"],
)
def test_each_difference_is_a_line(present: PresentTopic, line: str) -> None:
    assert differences(present) == [line]


FEWER, MORE = replace(PRESENT, partitions=3), replace(PRESENT, partitions=6)


def test_partitions_are_not_added_where_keys_would_move_and_the_reason_is_given() -> None:
    [line] = differences(FEWER)

    assert line.startswith("orders.v1 has 3 partitions, not 4: none are added, as its keys would")


def test_to_dead_letters_they_are_added() -> None:
    dead_letters = replace(DECLARED, is_keyed=False)

    [line] = find_differences([dead_letters], {"orders.v1": FEWER})

    assert line == "orders.v1 has 3 partitions, not 4: `make topics` adds them"


def test_only_a_topic_with_fewer_partitions_is_too_small() -> None:
    for present, expected in ((FEWER, [(DECLARED, FEWER)]), (PRESENT, []), (MORE, [])):
        assert list(find_too_small([DECLARED], {"orders.v1": present})) == expected
