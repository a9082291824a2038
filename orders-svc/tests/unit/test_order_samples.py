"""Events that were stored once are read for ever: a sample of each type and version."""

from pathlib import Path

import pytest

import orders_svc.item.contract
import orders_svc.order.contract
from orders_svc.item.events import CODEC as ITEM_CODEC
from orders_svc.order.events import CODEC as ORDER_CODEC

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.json"))


def test_every_event_has_a_sample() -> None:
    wanted = {
        f"{name}.v{version}"
        for codec in (ITEM_CODEC, ORDER_CODEC)
        for name in codec.names
        for version in range(1, codec.version_of(name) + 1)
    }

    assert {path.stem for path in SAMPLES} == wanted, "run `make contracts`"


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_is_read_for_ever_and_can_be_published(path: Path) -> None:
    name, _, version = path.stem.rpartition(".v")

    if name in ITEM_CODEC.names:
        item = ITEM_CODEC.decode(name, path.read_bytes(), int(version))
        assert orders_svc.item.contract.publish(item).key == str(item.item_id)
    else:
        order = ORDER_CODEC.decode(name, path.read_bytes(), int(version))
        assert orders_svc.order.contract.publish(order).key == str(order.user_id)
