"""One record at a time in Faust: an agent sends none, one or more records for each."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import faust

from lessons.lesson import Topic, Topics

ALERT_AMOUNT = Decimal("10000.00")


def copy_lines(app: faust.App, records: Topics, out: Topic) -> None:
    """The lines of a file through a topic: each is equal to the byte."""
    copy(app, records["records"], out, str)


def copy_stripped_lines(app: faust.App, records: Topics, out: Topic) -> None:
    """Wrong: white space is a part of a line."""
    copy(app, records["records"], out, str.strip)


def copy(app: faust.App, topic: Topic, out: Topic, change: Callable[[str], str]) -> None:
    @app.agent(topic)
    async def copy_each(stream: Any) -> None:
        async for event in stream.events():
            line = change(event.value.decode())
            await out.send(value={"key": event.key.decode(), "line": line})


def change_case(app: faust.App, records: Topics, out: Topic) -> None:
    """The whole text in upper case, the names of its fields as well."""

    @app.agent(records["records"])
    async def change_each(stream: Any) -> None:
        async for event in stream.events():
            await out.send(value={"value": event.value.decode().upper()})


def split_words(app: faust.App, records: Topics, out: Topic) -> None:
    """A record of any of the topics leads to a row for each of its words."""
    for name, topic in records.items():

        @app.agent(topic, name=f"split-{name}")
        async def split(stream: Any, name: str = name) -> None:
            async for event in stream.events():
                for word in event.value.decode().split(" "):
                    await out.send(value={"topic": name, "word": word})


def branch(app: faust.App, records: Topics, out: Topic) -> None:
    """Orders above an amount go elsewhere. Amounts are decimals: texts sort by their characters."""
    branch_if(lambda amount: Decimal(amount) > ALERT_AMOUNT, app, records["records"], out)


def branch_by_text(app: faust.App, records: Topics, out: Topic) -> None:
    """Wrong: as a text, 9999.99 is above 10000.00."""
    branch_if(lambda amount: amount > str(ALERT_AMOUNT), app, records["records"], out)


def branch_if(is_large: Callable[[str], bool], app: faust.App, topic: Topic, out: Topic) -> None:
    @app.agent(topic)
    async def branch_each(stream: Any) -> None:
        async for event in stream.events():
            amount = event.value.decode()
            to = "alerts" if is_large(amount) else "orders"
            await out.send(value={"key": event.key.decode(), "amount": amount, "to": to})
