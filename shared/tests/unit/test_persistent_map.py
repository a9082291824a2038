"""A persistent map is a dict to its readers, and its changed copies share what did not change."""

from hypothesis import given
from hypothesis import strategies as st

from shared.eventsourcing.persistent_map import LEAF_KEYS_MAX, PersistentMap


class Colliding(int):
    """A key whose hash many others have."""

    def __hash__(self) -> int:
        return int(self) % 3


keys = st.integers(-(2**70), 2**70) | st.integers(0, 200) | st.integers(0, 200).map(Colliding)
changes = st.lists(st.tuples(keys, st.none() | st.integers()), max_size=200)


@given(changes)
def test_it_holds_what_a_dict_would_hold(changes: list[tuple[int, int | None]]) -> None:
    """None removes a key."""
    expected: dict[int, int] = {}
    found: PersistentMap[int, int] = PersistentMap()
    for key, value in changes:
        if value is None:
            expected.pop(key, None)
            found = found.removed(key)
        else:
            expected[key] = value
            found = found.added(key, value)

        assert found.get(key) == expected.get(key)

    assert found == expected
    assert len(found) == len(expected)
    assert sorted(found) == sorted(expected)


def many(count: int) -> PersistentMap[int, int]:
    found: PersistentMap[int, int] = PersistentMap()
    for key in range(count):
        found = found.added(key, key)
    return found


def test_a_change_leaves_the_map_as_it_was() -> None:
    before = many(100)

    before.added(7, -1).removed(8).added(1_000, 0)

    assert before == {key: key for key in range(100)}


def test_a_change_copies_one_part_of_a_large_map() -> None:
    before = many(50 * LEAF_KEYS_MAX)

    for after in (before.added(7, -1), before.removed(7), before.added(1_000_000, 0)):
        parts = zip(before._root, after._root, strict=True)
        assert sum(old is not new for old, new in parts) == 1
