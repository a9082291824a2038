"""Events that were stored once are read permanently: a sample of each type and version."""

import json
from pathlib import Path

import pytest

from things_svc import contract
from things_svc.events import CODEC

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.json"))


def test_every_event_has_a_sample() -> None:
    wanted = {
        f"{name}.v{version}"
        for name in CODEC.names
        for version in range(1, CODEC.get_version(name) + 1)
    }

    assert {path.stem for path in SAMPLES} == wanted, "run `make contracts`"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_stored_sample_can_be_read_and_published(path: Path) -> None:
    name, _, version = path.stem.rpartition(".v")

    event = CODEC.decode(name, path.read_bytes(), int(version))

    assert CODEC.get_name(event) == name
    assert contract.publish(event).key == str(event.thing_id)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_no_field_of_the_newest_version_is_dropped(path: Path) -> None:
    """To leave one out takes a new version."""
    name, _, version = path.stem.rpartition(".v")

    if int(version) == CODEC.get_version(name):
        event = CODEC.decode(name, path.read_bytes(), int(version))
        sample, again = json.loads(path.read_text()), json.loads(CODEC.encode(event))
        assert sample == {field: again.get(field) for field in sample}
