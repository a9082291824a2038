"""Exercise: read numbers from a topic so that no crash loses one, then so that none repeats one.

Replace the holes. What a `reader` has (all of it is in reader.py):

- `reader.consume()`: a client of Kafka that begins where its group has committed;
- `reader.batches(consumer)`: lists of the records that are still to read, for `async for`;
- `await reader.process(record)`: the effect of a record, one row more in PostgreSQL;
- `await reader.process_by_source(record)`: the same, with topic, partition and offset as its unique
  key;
- `reader.connection.transaction()`: a transaction of PostgreSQL, for `async with`;
- `await reader.store_offset(offset)`, `await reader.find_offset()`: an offset in PostgreSQL, at
  first 0;
- `reader.partition`: topic and partition, for `consumer.seek`.

The process is killed after the effect of number 150, before and after the first offset that it
commits or stores, and before and after the second one. Each time another one begins.
"""

from lessons.committing.reader import Reader

HINTS = {
    "read_at_least_once": "A number is lost if its offset is committed before its effect, and"
    " repeated if it is committed afterwards. Without a commit, each life begins with number 1.",
    "read_exactly_once": "No order of effect and commit does it. Either both are one act: a"
    " transaction of PostgreSQL has the effects of a batch and the offset after its last record,"
    " with which the next life begins (consumer.seek). Or an effect is harmless when it is"
    " repeated, because it has a unique key.",
}


async def read_at_least_once(reader: Reader) -> None:
    """Read to the end: each number has an effect, and a crash repeats a batch at most."""
    async with reader.consume() as consumer:
        raise NotImplementedError


async def read_exactly_once(reader: Reader) -> None:
    """Read to the end: each number has one effect, wherever the process is killed."""
    async with reader.consume() as consumer:
        raise NotImplementedError
