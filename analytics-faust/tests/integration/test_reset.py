"""A reset is one act: afterwards everything is counted again, and never while a worker runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from analytics_faust import reset
from analytics_faust.copartitions import LINES_BY_ITEM, get_changelog
from analytics_faust.settings import FaustSettings
from shared.messaging.topics import INTERNAL_TOPICS
from test_support.analytics.histories import (
    HOUR,
    at,
    confirmed,
    listed,
    origin_corrected,
    registered,
)
from test_support.analytics.published import Elsewhere
from test_support.analytics.running_worker import Kafka, Start, Worker, hour_at
from test_support.analytics.still_histories import Totals

ONE = (1, 1, 1, 5_388_88)
NONE = (0, 0, 0, 0)
PURCHASE = [
    registered("Jack", "BJ"),
    listed("iphone", origin="BJ"),
    confirmed("order", "Jack", ("iphone", 1), ordered_at=at(1)),
]


@pytest.fixture
def settings(broker: str, tmp_path: Path) -> FaustSettings:
    return FaustSettings(
        environment="development", kafka_bootstrap_servers=broker, faust_dir=tmp_path / "tables"
    )


async def count_internal(kafka: Kafka) -> int:
    """Records between the steps, and in a changelog."""
    names = (LINES_BY_ITEM, get_changelog("buyers"))
    return sum(
        [await kafka.count_records(each, INTERNAL_TOPICS[each].partitions) for each in names]
    )


@pytest.mark.long
async def test_after_a_reset_and_only_then_every_record_is_counted_again(
    kafka: Kafka, start: Start, elsewhere: Elsewhere, settings: FaustSettings
) -> None:
    """Purchases whose facts stay are counted as before. One whose origin was corrected after it was
    counted is joined with the origin of today: it shows whether it was read again."""
    still, corrected = elsewhere, Elsewhere.on(elsewhere.days + 1)

    @contextmanager
    def running() -> Iterator[Worker]:
        worker = start(settings.faust_dir).wait_until_ready()
        yield worker
        assert worker.stop() == 0

    async def count(worker: Worker) -> tuple[Totals, Totals]:
        await kafka.wait_until_settled()
        return hour_at(worker, still.time(HOUR)), hour_at(worker, corrected.time(HOUR))

    await kafka.publish(*still.events(PURCHASE), *corrected.events(PURCHASE))
    with running() as worker:
        assert await count(worker) == (ONE, ONE)
        await kafka.publish(*corrected.events([origin_corrected("iphone", "SH")]))
        assert await count(worker) == (ONE, ONE)
        with pytest.raises(SystemExit, match="nothing was reset: 1 process is in the group") as no:
            await reset.run(settings)
        assert "\n" not in str(no.value)
        assert await count(worker) == (ONE, ONE)
    with running() as worker:
        assert await count(worker) == (ONE, ONE), "the negative control: nothing is read again"

    await reset.run(settings)

    assert not settings.faust_dir.exists()
    assert await count_internal(kafka) == 0
    with running() as worker:
        assert await count(worker) == (ONE, NONE)
    assert await count_internal(kafka) > 0


async def test_a_reset_that_was_interrupted_is_repeated(
    kafka: Kafka, settings: FaustSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its topics are deleted, and not created again."""

    async def end_here(*_: object) -> None:
        raise TimeoutError

    with monkeypatch.context() as patched:
        patched.setattr(reset, "create", end_here)
        with pytest.raises(SystemExit, match="the reset is not complete, repeat it"):
            await reset.run(settings)

    await reset.run(settings)

    assert await count_internal(kafka) == 0


async def test_an_unavailable_broker_is_reported_in_one_line(settings: FaustSettings) -> None:
    elsewhere = settings.model_copy(update={"kafka_bootstrap_servers": "127.0.0.1:1"})

    with pytest.raises(SystemExit, match="hometown: the reset is not complete") as no:
        await reset.run(elsewhere)

    assert "\n" not in str(no.value)
