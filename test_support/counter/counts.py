"""Two read models of counters, to test what keeps read models right."""

from collections.abc import Sequence
from uuid import UUID

from shared.messaging.messages import Message
from shared.projections.read_models import ReadModel
from shared.runtime.postgres import Connection
from test_support.counter.counter import CODEC, TOPIC

CREATE = """
    CREATE TABLE counts (
        counter_id uuid PRIMARY KEY,
        number integer NOT NULL,
        version integer NOT NULL
    );
    CREATE INDEX counts_by_number ON counts (number);
    CREATE TABLE sums (
        counter_id uuid PRIMARY KEY,
        total integer NOT NULL,
        version integer NOT NULL
    )
"""

COUNT = """
    INSERT INTO counts AS known (counter_id, number, version)
    VALUES ($1, $2, $3)
    ON CONFLICT (counter_id) DO UPDATE
    SET number = excluded.number, version = excluded.version
    WHERE known.version < excluded.version
"""

ADD = """
    INSERT INTO sums AS known (counter_id, total, version)
    VALUES ($1, $2, $3)
    ON CONFLICT (counter_id) DO UPDATE
    SET total = known.total + excluded.total, version = excluded.version
    WHERE known.version < excluded.version
"""


async def count(connection: Connection, messages: Sequence[Message]) -> None:
    await connection.executemany(COUNT, [to_row(each) for each in messages])


async def add(connection: Connection, messages: Sequence[Message]) -> None:
    """An event that is missing, repeated or out of its order makes the total wrong permanently."""
    await connection.executemany(ADD, [to_row(each) for each in messages])


def to_row(message: Message) -> tuple[UUID, int, int]:
    event = CODEC.read(message)
    return event.counter_id, event.number, message.stream_version


READ_MODELS = (
    ReadModel(name="counts", topic=TOPIC, types=("counted",), project=count),
    ReadModel(name="sums", topic=TOPIC, types=("counted",), project=add),
)
