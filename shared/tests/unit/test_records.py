"""A record as a message in full, or the reason why it is none."""

from dataclasses import replace
from uuid import UUID

import pytest

from shared.messaging.records import IncomingRecord, Malformed, parse_message
from shared.runtime.identifiers import new_id
from test_support.counter.counted_records import record

COUNTER = UUID(int=1)


def test_a_record_is_read_in_full() -> None:
    message = parse_message(record(COUNTER, 7, previous=4))

    assert (message.topic, message.type, message.key) == ("users.v1", "counted", str(COUNTER))
    assert (message.stream_id, message.stream_version) == (COUNTER, 7)
    assert message.previous_version == 4


def test_a_record_need_not_name_the_version_before_it() -> None:
    whole = record(COUNTER, 7)
    bare = replace(whole, headers=[each for each in whole.headers if "previous" not in each[0]])

    assert parse_message(bare).previous_version is None


def with_header(name: str, value: bytes | None) -> IncomingRecord:
    """Before the other ones."""
    whole = record(COUNTER, 7)
    return replace(whole, headers=[(name, value), *whole.headers])


@pytest.mark.parametrize(
    "other",
    [
        ("ce_other", b"\xff"),
        ("ce_other", None),
        ("\\xff\\xfe", b""),
        ("", b"\0"),
        ("traceparent", b"\xff"),
        ("traceparent", None),
    ],
)
def test_a_header_that_no_message_needs_can_be_anything(other: tuple[str, bytes | None]) -> None:
    assert parse_message(with_header(*other)).stream_version == 7


def test_of_two_headers_with_one_name_the_first_counts() -> None:
    assert parse_message(with_header("ce_streamversion", b"8")).stream_version == 8


@pytest.mark.parametrize(
    ("malformed", "reason"),
    [
        (replace(record(COUNTER, 7), headers=[]), "no header"),
        (replace(record(COUNTER, 7), key=None), "no key"),
        (replace(record(COUNTER, 7), value=None), "no value"),
        (replace(record(COUNTER, 7), key=b"\xff"), "can't decode"),
        (with_header("ce_id", b"\xff"), "can't decode"),
        (with_header("ce_id", b"seven"), "badly formed"),
        (with_header("ce_streamversion", b"seven"), "invalid literal"),
        (with_header("ce_streamversion", b"0"), "version 0"),
        (with_header("ce_streamversion", b"2147483648"), "version 2147483648"),
        (with_header("ce_previousversion", b"7"), "version 7 after 7"),
        (with_header("ce_previousversion", b"-1"), "invalid literal"),
        (with_header("ce_time", b"2016-11-11T00:00:00"), "no time zone"),
        (with_header("ce_id", None), "no header 'ce_id'"),
        (with_header("ce_streamversion", b"1_0"), "invalid literal"),
        (with_header("ce_streamversion", b" 8"), "invalid literal"),
        (with_header("ce_streamversion", "\u0661".encode()), "invalid literal"),
        (with_header("ce_schemaversion", b"9" * 5_000), "invalid literal"),
        (with_header("ce_id", b"urn:uuid:00000000-0000-0000-0000-000000000001"), "badly formed"),
    ],
)
def test_a_record_that_is_no_message_has_a_reason(malformed: IncomingRecord, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        parse_message(malformed)


def test_a_record_has_the_id_of_its_event() -> None:
    """Else a record that is read again would be another event under a consumed version."""
    counter = new_id()

    [first, again, second] = [parse_message(record(counter, version)) for version in (1, 1, 2)]

    assert first.event_id == again.event_id
    assert first.event_id != second.event_id
