"""The as-of look-up compared with a plain loop."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_spark.job import versions
from analytics_spark.job.versions import Changes, Versions

KEYS = st.sampled_from(["a", "b", "ключ", ""])
TIMES = st.integers(min_value=0, max_value=20)
CHANGES = st.lists(st.tuples(KEYS, TIMES, st.integers(min_value=1, max_value=5)), max_size=30)
QUESTIONS = st.lists(st.tuples(KEYS, TIMES), min_size=1, max_size=10)

Change = tuple[str, int, int]


def table(changes: list[Change]) -> pa.Table:
    """The value of a version says which one it is: key, valid_from and seq."""
    return pa.table(
        {
            "key": pa.array([key for key, _, _ in changes], pa.string()),
            "valid_from": pa.array([since for _, since, _ in changes], pa.int64()),
            "seq": pa.array([seq for _, _, seq in changes], pa.int64()),
            "value": pa.array(["/".join(map(str, change)) for change in changes], pa.string()),
        }
    )


def versions_of(*batches: list[Change], watermark: int = -1) -> Versions:
    result = Versions.empty({"value": pa.string()})
    for batch in batches:
        result = Versions.from_bytes(result.merge(table(batch), watermark).to_bytes())
    return result


def answers(asked: Versions, questions: list[tuple[str, int]]) -> list[str | None]:
    keys = pa.array([key for key, _ in questions], pa.string())
    times = np.array([time for _, time in questions], np.int64)
    found: list[str | None] = asked.take("value", asked.find(keys, times)).to_pylist()
    return found


def naive(changes: list[Change], key: str, time: int) -> str | None:
    valid = [(since, seq) for each, since, seq in changes if each == key and since <= time]
    if not valid:
        return None
    since, seq = max(valid)
    return f"{key}/{since}/{seq}"


def test_more_keys_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.iinfo(np.int64).max == (versions.KEYS_MAX << versions.TIME_BITS) - 1
    monkeypatch.setattr(versions, "KEYS_MAX", 2)
    assert answers(versions_of([("a", 1, 1), ("b", 1, 1)]), [("b", 1)]) == ["b/1/1"]

    with pytest.raises(OverflowError, match="3 keys in one bucket, at most 2 fit"):
        versions_of([("a", 1, 1), ("b", 1, 1), ("c", 1, 1)])


@given(changes=CHANGES, questions=QUESTIONS)
def test_the_answer_is_the_version_with_the_latest_beginning(
    changes: list[Change], questions: list[tuple[str, int]]
) -> None:
    expected = [naive(changes, key, time) for key, time in questions]

    assert answers(versions_of(changes), questions) == expected


@given(first=CHANGES, second=CHANGES, questions=QUESTIONS)
def test_how_changes_are_cut_into_batches_does_not_matter(
    first: list[Change], second: list[Change], questions: list[tuple[str, int]]
) -> None:
    expected = answers(versions_of(first + second), questions)

    assert answers(versions_of(first, second), questions) == expected
    assert answers(versions_of(second, first), questions) == expected


@given(changes=CHANGES, questions=QUESTIONS, watermark=TIMES)
def test_forgetting_old_versions_changes_no_answer_after_the_watermark(
    changes: list[Change], questions: list[tuple[str, int]], watermark: int
) -> None:
    after = [(key, max(time, watermark)) for key, time in questions]
    compact = versions_of(changes, watermark=watermark)

    assert answers(compact, after) == [naive(changes, key, time) for key, time in after]


@given(changes=CHANGES, more=CHANGES, questions=QUESTIONS)
def test_an_answer_that_changes_was_touched(
    changes: list[Change], more: list[Change], questions: list[tuple[str, int]]
) -> None:
    before, after = versions_of(changes), versions_of(changes, more)
    keys = pa.array([key for key, _ in questions], pa.string())
    times = np.array([time for _, time in questions], np.int64)
    touched = Changes(table(more)).touch(keys, times)

    pairs = zip(answers(before, questions), answers(after, questions), strict=True)
    assert all(hit or old == new for hit, (old, new) in zip(touched.tolist(), pairs, strict=True))
