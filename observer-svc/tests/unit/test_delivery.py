"""Written minus applied: equal at rest, and known only where both sides are."""

from observer_svc.delivery import APPLIED, WRITTEN, Count, compare
from shared.messaging.topics import Topic


def topic(name: str, category: str | None, *readers: str) -> Topic:
    return Topic(name=name, partitions=1, readers=readers, types=(), category=category)


TOPICS = [
    topic("users.v1", "user", "users-worker", "orders-worker", "job"),
    topic("items.v1", "item", "orders-worker"),
    topic("notes.v1", None, "notes-worker"),
]
WRITES = [Count(WRITTEN, "user", 10), Count(WRITTEN, "item", 5)]


def test_a_consumer_that_has_applied_everything_does_not_differ() -> None:
    counts = [*WRITES, Count(APPLIED, "users-worker", 10), Count(APPLIED, "orders-worker", 15)]

    assert compare(counts, TOPICS) == {"users-worker": 0, "orders-worker": 0}


def test_what_a_consumer_has_not_applied_is_the_difference() -> None:
    assert compare([*WRITES, Count(APPLIED, "users-worker", 8)], TOPICS) == {"users-worker": 2}


def test_a_topic_without_a_category_cannot_be_compared() -> None:
    assert compare([*WRITES, Count(APPLIED, "notes-worker", 8)], TOPICS) == {}
