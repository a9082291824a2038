"""Rights on tables are declared next to the migrations of each package."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from shared.runtime.rights import load_rights


def test_the_facts_of_the_packages_are_declared() -> None:
    shared = {"migrations": "SELECT"} | dict.fromkeys(
        ("events", "outbox", "parked_audit"), "SELECT, INSERT"
    )

    assert load_rights(["shared", "users_svc"]).service == shared
    assert load_rights(["shared", "orders_svc"]).service == shared
    read = {"events", "outbox", "relay", "parked_streams"}
    assert load_rights(["shared", "users_svc"]).reader.keys() == read
    assert load_rights(["shared", "orders_svc"]).reader.keys() == read | {"publications"}
    assert load_rights(["analytics_spark"]).service == {
        "migrations": "SELECT",
        "generations": "SELECT",
    }
    assert load_rights(["analytics_spark"]).reader.keys() == {
        "consumer_positions",
        "consumer_progress",
    }


@pytest.mark.parametrize(
    "text", ["[servce]\n", '[service]\nnotes = "TRUNCATE"\n', '[reader]\nnotes = "INSERT"\n']
)
def test_a_right_that_cannot_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    folder = tmp_path / "notes_of_a_test"
    (folder / "migrations").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "migrations/rights.toml").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ValidationError):
        load_rights([folder.name])
