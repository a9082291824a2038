"""The answers of a copy follow what is done to it."""

from pathlib import Path

import pytest

from scripts import answers
from scripts.answers import ANSWERS, note_left_out, note_name, read_answers, write_answers
from scripts.changes import ChangeError

MADE = {"_commit": "v1.0.0", "_src_path": "of/sky", "without": ["sun"], "name": "sky"}


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "DECLARED", frozenset(["moon", "sun"]))


def test_a_new_name_and_parts_that_went_are_noted(tmp_path: Path) -> None:
    write_answers(tmp_path, MADE)

    note_name(tmp_path, "ocean")
    note_left_out(tmp_path, ["sun", "moon", "mine"])

    assert read_answers(tmp_path) == {**MADE, "name": "ocean", "without": ["moon", "sun"]}


def test_what_is_no_copy_gets_no_answers(tmp_path: Path) -> None:
    note_name(tmp_path, "ocean")
    note_left_out(tmp_path, ["moon"])

    assert not (tmp_path / ANSWERS).exists()


@pytest.mark.parametrize(
    "text", ["", "<<<<<<< a\nb: [", "without: sun\n", "name: sky\n", "- sun\n"]
)
def test_answers_that_cannot_be_read_are_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / ANSWERS).write_text(text)

    with pytest.raises(
        ChangeError, match="has no list `without`: bring back the file that git has"
    ):
        note_name(tmp_path, "ocean")
