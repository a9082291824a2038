"""A topic as a stream and as a table in Faust: what an agent does with the value before decides."""

import re
from collections.abc import Callable
from typing import Any

import faust

from lessons.lesson import Topic, Topics


def sum_changes(app: faust.App, records: Topics, out: Topic) -> None:
    """As a stream: each record is a change, and they add up."""
    sums = app.Table("sums", default=int)
    counts = app.Table("counts", default=int)

    @app.agent(records["records"])
    async def add(stream: Any) -> None:
        async for event in stream.events():
            key = event.key.decode()
            sums[key] += int(event.value)
            counts[key] += 1
            await out.send(value={"key": key, "sum": sums[key], "records": counts[key]})


def keep_last(app: faust.App, records: Topics, out: Topic) -> None:
    """As a table: each record replaces the one before of its key; without a value it deletes it."""
    keep(app, records["records"], out, lambda value: value)


def keep_last_number(app: faust.App, records: Topics, out: Topic) -> None:
    """Wrong: a value that cannot be read becomes None, and that means: delete it."""
    keep(app, records["records"], out, lambda value: value if value and value.isdigit() else None)


def keep(
    app: faust.App, topic: Topic, out: Topic, read: Callable[[str | None], str | None]
) -> None:
    values = app.Table("last")

    @app.agent(topic)
    async def keep_each(stream: Any) -> None:
        async for event in stream.events():
            key = event.key.decode()
            value = read(None if event.value is None else event.value.decode())
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
            await out.send(value={"key": key, "last": values.get(key)})


def count_words(app: faust.App, records: Topics, out: Topic) -> None:
    """Word count: split where no word is, in lower case, without `the`."""
    count_all_but(("", "the"), app, records["records"], out)


def count_words_and_gaps(app: faust.App, records: Topics, out: Topic) -> None:
    """Wrong: a text that begins or ends with a separator has an empty word there."""
    count_all_but(("the",), app, records["records"], out)


def count_all_but(ignored: tuple[str, ...], app: faust.App, topic: Topic, out: Topic) -> None:
    """The words go through a topic first, so that all equal ones are counted by one worker."""
    words = app.topic(
        f"{app.conf.id}-words",
        partitions=1,
        internal=True,
        key_serializer="raw",
        value_serializer="raw",
    )
    counts = app.Table("words", default=int)

    @app.agent(topic)
    async def split(stream: Any) -> None:
        async for event in stream.events():
            for word in re.split(r"\W+", event.value.decode().lower(), flags=re.ASCII):
                if word not in ignored:
                    await words.send(key=word.encode(), value=b"1")

    @app.agent(words)
    async def count(stream: Any) -> None:
        async for event in stream.events():
            word = event.key.decode()
            counts[word] += 1
            await out.send(value={"word": word, "count": counts[word]})
