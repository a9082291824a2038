"""Rates and charts follow from scrapes, also over a restart and a gap."""

import pytest

from console_svc.metrics import LAG, POINTS_MAX, SCRAPES_MAX, SERIES, History, Window, parse

TEXT = """\
# HELP hometown_relay_records_total Records
# TYPE hometown_relay_records_total counter
hometown_relay_records_total{{topic="notes.v1"}} {notes}
hometown_relay_records_total{{topic="tags.v1"}} {tags}
# TYPE hometown_relay_delay_seconds histogram
hometown_relay_delay_seconds_bucket{{le="0.1"}} 3
hometown_relay_delay_seconds_sum {seconds}
hometown_relay_delay_seconds_count {batches}
# TYPE python_info gauge
python_info{{version="3"}} 1
"""
RECORDS, DELAY = "hometown_relay_records_total", "hometown_relay_delay_seconds"


def window(*values: tuple[float, float], seconds: float = 2.0, tags: float = 0.0) -> Window:
    """Of scrapes with so many notes and so many seconds of delay; a batch has one note."""
    made = Window()
    for number, (notes, delay) in enumerate(values):
        text = TEXT.format(notes=notes, tags=tags, seconds=delay, batches=notes)
        made.scrapes.append(parse(text, number * seconds))
    return made


def test_only_what_is_shown_is_kept() -> None:
    scrape = parse(TEXT.format(notes=4, tags=2, seconds=1, batches=1), 1.0)

    assert scrape.values.keys() == {RECORDS, f"{DELAY}_sum", f"{DELAY}_count"}
    assert scrape.total(RECORDS) == 6
    assert scrape.total(RECORDS, topic="notes.v1") == 4
    assert scrape.total(RECORDS, topic="none") is None


def test_a_malformed_text_is_refused() -> None:
    with pytest.raises(ValueError, match="could not convert"):
        parse("hometown_relay_records_total much\n", 0.0)


def test_a_rate_is_the_growth_of_a_counter_over_its_window() -> None:
    grown = window((10, 0), (14, 0), (20, 0))

    assert grown.rate(RECORDS, topic="notes.v1") == 2.5
    assert grown.flow(RECORDS, topic="notes.v1") == 2.5


def test_a_counter_that_is_not_exposed_has_no_rate_and_no_flow_to_speak_of() -> None:
    grown = window((1, 0), (2, 0))

    assert grown.rate("hometown_append_events_total") is None
    assert grown.flow("hometown_append_events_total") == 0
    assert window((1, 0)).flow(RECORDS) is None


def test_after_a_restart_a_counter_began_at_zero() -> None:
    assert window((100, 0), (104, 0), (3, 0)).increase(RECORDS) == 7


def test_the_mean_is_that_of_the_window_and_not_of_all_time() -> None:
    assert window((1, 9.0), (3, 9.5)).mean(DELAY) == 0.25
    assert window((3, 9.0), (3, 9.0)).mean(DELAY) is None


def test_a_window_is_bounded() -> None:
    many = window(*[(number, 0.0) for number in range(3 * SCRAPES_MAX)])

    assert len(many.scrapes) == SCRAPES_MAX


def test_a_history_is_bounded_begins_with_a_value_and_keeps_gaps() -> None:
    history = History()
    history.add(LAG, None)
    assert list(history) == []

    for value in (1.0, None, *[2.0] * POINTS_MAX):
        history.add(LAG, value)
    history.add(LAG, None)

    [(series, points)] = list(history)
    assert series is LAG
    assert (len(points), points[-2:]) == (POINTS_MAX, [2.0, None])


def test_a_process_has_the_series_that_it_exposes() -> None:
    history = History()
    history.add_all(window((1, 0.5), (3, 1.0)))

    assert [(series.title, list(points)) for series, points in history] == [
        ("records published", [1.0]),
        ("delay", [250.0]),
    ]
    assert {series for series, _ in history} < set(SERIES)
