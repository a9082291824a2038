"""Stored events stay readable permanently: a sample of each type and version."""

import json
from pathlib import Path
from typing import Any

import pytest

import orders_svc.item.contract
import orders_svc.order.contract
from orders_svc.item.events import CODEC as ITEM_CODEC
from orders_svc.order.events import CODEC as ORDER_CODEC
from shared.eventsourcing.codec import Codec

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.json"))


def test_every_event_has_a_sample() -> None:
    wanted = {
        f"{name}.v{version}"
        for codec in (ITEM_CODEC, ORDER_CODEC)
        for name in codec.names
        for version in range(1, codec.get_version(name) + 1)
    }

    assert {path.stem for path in SAMPLES} == wanted, "run `make contracts`"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_can_be_read_and_published(path: Path) -> None:
    name, _, version = path.stem.rpartition(".v")

    if name in ITEM_CODEC.names:
        item = ITEM_CODEC.decode(name, path.read_bytes(), int(version))
        assert orders_svc.item.contract.publish(item).key == str(item.item_id)
    else:
        order = ORDER_CODEC.decode(name, path.read_bytes(), int(version))
        assert orders_svc.order.contract.publish(order).key == str(order.user_id)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_no_field_of_the_newest_version_is_dropped(path: Path) -> None:
    """Removing a field takes a new version."""
    name, _, version = path.stem.rpartition(".v")
    codec: Codec[Any] = ITEM_CODEC if name in ITEM_CODEC.names else ORDER_CODEC

    if int(version) == codec.get_version(name):
        event = codec.decode(name, path.read_bytes(), int(version))
        sample, again = json.loads(path.read_text()), json.loads(codec.encode(event))
        assert sample == {field: again.get(field) for field in sample}
