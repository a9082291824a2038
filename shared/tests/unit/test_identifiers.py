"""Identifiers: new ones sort by time, derived ones are the same each time."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from shared.runtime.identifiers import derive_id, first_id_at, new_id


def test_new_ids_are_version_7_and_ascend() -> None:
    ids = [new_id() for _ in range(1_000)]

    assert {each.version for each in ids} == {7}
    assert ids == sorted(set(ids))


def test_the_first_id_of_an_instant_parts_earlier_ids_from_later_ones() -> None:
    before, made, after = datetime.now(UTC), new_id(), datetime.now(UTC)

    assert first_id_at(before) < made < first_id_at(after + timedelta(milliseconds=1))
    assert first_id_at(after) > first_id_at(after - timedelta(milliseconds=1))


def test_a_derived_id_is_a_version_7_of_the_same_moment() -> None:
    source = new_id()

    derived = derive_id(source, "payment")

    assert derived.version == 7
    assert derived.variant == source.variant
    assert derived.bytes[:6] == source.bytes[:6]


def test_a_derived_id_is_the_same_each_time_and_in_each_release() -> None:
    source = UUID("01a20798-a3ea-71b1-b964-e379c0e81f88")

    assert derive_id(source, "payment") == UUID("01a20798-a3ea-7d6d-8715-adb5cd2c7d1e")


def test_each_kind_and_each_source_has_an_id_of_its_own() -> None:
    sources = [new_id(), new_id()]

    derived = {derive_id(source, kind) for source in sources for kind in ("payment", "parcel")}

    assert len(derived) == 4
    assert not derived & set(sources)
