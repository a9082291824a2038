"""Windows in Faust, by hand: Faust's own expire by the clock of the machine, so that windows of
2016 would be gone at once. Here, a table has a key for each window, and the newest record says
what time it is.

`grace`: seconds that a record may be behind the newest one.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import faust

from lessons.lesson import Topic, Topics

SECOND = 1000
MINUTE = 60 * SECOND

Window = tuple[int, int]
"""Begin and end, which is not part of it, in milliseconds since 1970."""
Windows = Callable[[int], Sequence[Window]]
"""The windows that a time is in."""


class Clock:
    """The time of a stream: that of its newest record. Without a record, it does not advance."""

    def __init__(self, grace: int) -> None:
        self._grace = grace * SECOND
        self._newest = 0

    @property
    def watermark(self) -> int:
        """A window that has ended by then is closed."""
        return self._newest - self._grace

    def advance(self, time: int) -> None:
        self._newest = max(self._newest, time)


def windows(size: int, advance: int, offset: int = 0) -> Windows:
    """Windows of a size, one each `advance`, counted from 1970 and an offset."""

    def find(time: int) -> Sequence[Window]:
        last = time - (time - offset) % advance
        return [(begin, begin + size) for begin in range(last, time - size, -advance)]

    return find


def count_tumbling(app: faust.App, records: Topics, out: Topic, grace: int = 60) -> None:
    """Each 5 seconds by themselves. A late record corrects its window."""
    count_in(windows(5 * SECOND, 5 * SECOND), app, records["records"], out, grace)


def count_final(app: faust.App, records: Topics, out: Topic, grace: int = 60) -> None:
    """The same, with one row of each window, when no record can change it any more."""
    find = windows(5 * SECOND, 5 * SECOND)
    count_in(find, app, records["records"], out, grace, is_final=True)


def count_hopping(app: faust.App, records: Topics, out: Topic, grace: int = 4 * 3600) -> None:
    """5 minutes, once a minute: each record is in five windows."""
    count_in(windows(5 * MINUTE, MINUTE), app, records["records"], out, grace)


def count_unaligned(app: faust.App, records: Topics, out: Topic, grace: int = 60) -> None:
    """5 minutes that begin 2 minutes past each fifth one."""
    count_in(windows(5 * MINUTE, 5 * MINUTE, 2 * MINUTE), app, records["records"], out, grace)


def count_in(
    find: Windows,
    app: faust.App,
    topic: Topic,
    out: Topic,
    grace: int,
    *,
    is_final: bool = False,
    get_time: Callable[[Any], int] | None = None,
) -> None:
    """Count the records of each key and window; a row on each change, or a final one."""
    clock = Clock(grace)
    counts = app.Table("counts", default=int)

    @app.agent(topic)
    async def count(stream: Any) -> None:
        async for event in stream.events():
            time = (get_time or to_milliseconds)(event)
            for begin, end in find(time):
                if end <= clock.watermark:
                    await out.send(value={"dropped": 1})
                    continue
                key = to_key(event, begin, end)
                counts[key] += 1
                if not is_final:
                    await out.send(value=to_row(key, counts[key]))
            clock.advance(time)
            if is_final:
                for key in [key for key in counts if int(key.split()[2]) <= clock.watermark]:
                    await out.send(value=to_row(key, counts.pop(key)))


def count_sessions(app: faust.App, records: Topics, out: Topic, grace: int = 1800) -> None:
    """Visits that end after 30 minutes without a click. A late click can join two of them."""
    gap, clock = 30 * MINUTE, Clock(grace)
    sessions = app.Table("sessions", default=list)

    @app.agent(records["records"])
    async def count(stream: Any) -> None:
        async for event in stream.events():
            time, key = to_milliseconds(event), event.key.decode()
            begin, end, clicks = time, time + gap, 1
            if end <= clock.watermark:
                await out.send(value={"dropped": 1})
                continue
            apart = []
            for other in sessions[key]:
                if other[0] <= end and begin <= other[1]:
                    begin, end = min(begin, other[0]), max(end, other[1])
                    clicks += other[2]
                else:
                    apart.append(other)
            sessions[key] = [*apart, [begin, end, clicks]]
            clock.advance(time)
            for user in list(sessions):
                closed = [each for each in sessions[user] if each[1] <= clock.watermark]
                sessions[user] = [each for each in sessions[user] if each not in closed]
                for begin, end, clicks in closed:
                    await out.send(value=to_row(f"{user} {begin} {end}", clicks))


def summarize_trades(app: faust.App, records: Topics, out: Topic, grace: int = 60) -> None:
    """Of each ticker, every second, the last 5: number of trades, lowest and average ask."""
    find, clock = windows(5 * SECOND, SECOND), Clock(grace)
    trades = app.Table("trades")

    @app.agent(records["records"])
    async def summarize(stream: Any) -> None:
        async for event in stream.events():
            ask, time = float(event.value), to_milliseconds(event)
            for begin, end in find(time):
                if end <= clock.watermark:
                    await out.send(value={"dropped": 1})
                    continue
                key = to_key(event, begin, end)
                number, lowest, total = trades.get(key, (0, ask, 0.0))
                number, lowest, total = number + 1, min(lowest, ask), total + ask
                trades[key] = (number, lowest, total)
                row = {"trades": number, "lowest": lowest, "average": total / number}
                await out.send(value={"key": event.key.decode(), "start": to_text(begin)} | row)
            clock.advance(time)


def report_silence(app: faust.App, records: Topics, out: Topic, grace: int = 1) -> None:
    """A timer: a row because nothing came."""
    silence, clock = 60 * SECOND, Clock(grace)
    last = app.Table("last", default=int)

    @app.agent(records["records"])
    async def report(stream: Any) -> None:
        async for event in stream.events():
            key, time = event.key.decode(), to_milliseconds(event)
            if time <= clock.watermark:
                await out.send(value={"dropped": 1})
                continue
            last[key] = max(last[key], time)
            clock.advance(time)
            for each in [key for key in last if last[key] + silence <= clock.watermark]:
                await out.send(value={"key": each, "silent_since": to_text(last.pop(each))})


def count_by_arrival(app: faust.App, records: Topics, out: Topic, grace: int = 60) -> None:
    """Wrong: by the clock of this machine. Read again, the same records are counted elsewhere."""

    def now(event: object) -> int:
        return int(datetime.now(UTC).timestamp() * SECOND)

    count_in(windows(5 * SECOND, 5 * SECOND), app, records["records"], out, grace, get_time=now)


def count_without_grace(app: faust.App, records: Topics, out: Topic, grace: int = 0) -> None:
    """Wrong: what is late is dropped."""
    count_tumbling(app, records, out, grace)


def to_milliseconds(event: Any) -> int:
    milliseconds: int = round(event.message.timestamp * SECOND)
    return milliseconds


def to_key(event: Any, begin: int, end: int) -> str:
    return f"{event.key.decode()} {begin} {end}"


def to_row(key: str, count: int) -> Mapping[str, object]:
    name, begin, end = key.split()
    return {
        "key": name,
        "start": to_text(int(begin)),
        "end": to_text(int(end)),
        "count": count,
    }


def to_text(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / SECOND, UTC).isoformat()
