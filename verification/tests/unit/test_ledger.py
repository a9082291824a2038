"""The verdict of a stress run detects and reports each possible fault."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from verification.stress import ledger
from verification.stress.campaign import find_complaints
from verification.stress.ledger import CODEC, Delivery, Entry, Memory, Verdict, chain, digest
from verification.stress.trial import Outcome, Trial

ONE, OTHER = UUID(int=1), UUID(int=2)


def stream(stream_id: UUID, count: int) -> list[tuple[Entry, str]]:
    return [
        (
            Entry(stream_id=stream_id, version=event.version, digest=digest(CODEC.encode(event))),
            event.predecessor,
        )
        for event in chain(stream_id, 0, "", count)
    ]


STORED = stream(ONE, 3) + stream(OTHER, 2)
ENTRIES = [entry for entry, _ in STORED]
DELIVERIES = [
    Delivery(entry=entry, predecessor=predecessor, at=10.0 + number)
    for number, (entry, predecessor) in enumerate(STORED)
]
FORGED = Entry(stream_id=OTHER, version=3, digest="forged")


def verdict(
    deliveries: Sequence[Delivery] = DELIVERIES,
    remembered: Sequence[Entry] = ENTRIES,
    unsure: Sequence[Entry] = (),
    disturbed_at: Sequence[float] = (),
    stored: Sequence[tuple[Entry, str]] = STORED,
) -> Verdict:
    memory = Memory(committed_at=dict.fromkeys(remembered, 0.0), unsure=set(unsure))
    return ledger.judge(stored, memory, deliveries, disturbed_at)


def test_books_that_agree_are_good() -> None:
    assert verdict().is_good
    assert verdict().committed == verdict().delivered == len(STORED)


def test_a_lost_event_shows_in_the_books_and_in_its_chain() -> None:
    found = verdict([each for each in DELIVERIES if each.entry != ENTRIES[1]])

    assert (found.lost, found.broken_links, found.inversions) == (1, 1, 0)
    assert not found.is_good


def test_the_last_event_of_a_stream_is_missed_as_well() -> None:
    assert verdict(DELIVERIES[:-1]).lost == 1


def test_swapped_events_are_an_inversion() -> None:
    first, second, *rest = DELIVERIES

    found = verdict([second, first, *rest])

    assert (found.lost, found.inversions) == (0, 1)
    assert found.broken_links > 0
    assert not found.is_good


def test_streams_may_come_in_any_order() -> None:
    assert verdict([*DELIVERIES[3:], *DELIVERIES[:3]]).is_good


def test_an_event_that_was_never_committed_is_a_phantom() -> None:
    phantom = Delivery(entry=FORGED, predecessor=ENTRIES[-1].digest, at=20.0)

    found = verdict([*DELIVERIES, phantom])

    assert found.phantom == 1
    assert not found.is_good


def test_a_changed_event_is_lost_and_a_phantom() -> None:
    changed = replace(DELIVERIES[1], entry=replace(ENTRIES[1], digest="changed"))

    found = verdict([DELIVERIES[0], changed, *DELIVERIES[2:]])

    assert (found.lost, found.phantom, found.broken_links) == (1, 1, 1)


@pytest.mark.parametrize(
    ("disturbed_at", "without_cause"),
    [
        pytest.param([], 1, id="never"),
        pytest.param([5.0], 1, id="before the first delivery"),
        pytest.param([15.0], 0, id="between the two"),
        pytest.param([25.0], 1, id="after the second"),
    ],
)
def test_a_repetition_is_good_only_after_a_disturbance(
    disturbed_at: Sequence[float], without_cause: int
) -> None:
    repeated = replace(DELIVERIES[0], at=20.0)

    found = verdict([*DELIVERIES, repeated], disturbed_at=disturbed_at)

    assert found.duplicates == 1
    assert found.duplicates_without_cause == without_cause
    assert found.is_good == (without_cause == 0)


def test_an_acknowledged_commit_that_is_not_stored_is_noticed() -> None:
    assert verdict(remembered=[*ENTRIES, FORGED]).misremembered == 1


def test_a_stored_event_that_nobody_wrote_is_noticed() -> None:
    assert verdict(remembered=ENTRIES[:-1]).misremembered == 1


def test_a_commit_without_an_answer_may_have_happened_or_not() -> None:
    assert verdict(remembered=ENTRIES[:-1], unsure=[ENTRIES[-1], FORGED]).is_good


def test_a_store_whose_chain_does_not_hold_is_noticed() -> None:
    tampered = [STORED[0], (STORED[1][0], "else"), *STORED[2:]]

    assert verdict(stored=tampered).broken_links == 1


def test_percentiles_are_values_that_were_seen() -> None:
    values = [1.0, 2.0, 3.0, 4.0]

    assert [ledger.percentile(values, part) for part in (0, 0.5, 0.75, 0.99, 1)] == [1, 2, 3, 4, 4]


def outcome(relay: str, verdict: Verdict, *exit_codes: int) -> Outcome:
    return Outcome(
        trial=Trial(seed=7, relay=relay, seconds=1, writers=1, streams=1, is_calm=True),
        verdict=verdict,
        blows=0,
        races_lost=0,
        duplicates_bound=0,
        delays=[],
        delays_at_rest=[],
        exit_codes=exit_codes,
    )


GOOD = outcome("ours", verdict())
LOSING = outcome("position", verdict(DELIVERIES[:-1]))
INVERTING = outcome("horizon", verdict([DELIVERIES[1], DELIVERIES[0], *DELIVERIES[2:]]))


def test_good_runs_and_flawed_controls_are_no_complaint() -> None:
    assert find_complaints([GOOD], [LOSING, INVERTING]) == []


def test_a_bad_run_is_named_by_its_seed() -> None:
    assert find_complaints([GOOD, LOSING], []) == ["seed 7 of relay position is bad"]


def test_a_relay_that_ended_by_itself_is_bad() -> None:
    assert find_complaints([outcome("ours", verdict(), 1)], []) == ["seed 7 of relay ours is bad"]


@pytest.mark.parametrize("relay", ["position", "horizon"])
def test_a_control_without_its_flaw_makes_the_runs_worthless(relay: str) -> None:
    [complaint] = find_complaints([GOOD], [outcome(relay, verdict())])

    assert f"relay {relay} shows no flaw" in complaint


def test_the_fullest_period_may_begin_at_any_instant() -> None:
    assert ledger.count_most_within([0.75, 3.0, 1.25, 1.5, 1.75], 1.0) == 3
    assert ledger.count_most_within([], 1.0) == 0
