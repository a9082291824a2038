"""Ways to send numbers. Each notes which ones its caller believes to be stored."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

ROUNDS_MAX = 5
"""Of sending again by hand."""

Sent = asyncio.Future[Any]
"""Has the place of a record once it is acknowledged, or the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    producer: AIOKafkaProducer
    topic: str
    to_value: Callable[[int], bytes]
    believed: set[int] = field(default_factory=set)
    """Acknowledged; or handed over without an error, where nothing is waited for."""

    async def hand_over(self, number: int) -> Sent | None:
        """None if the client itself does not take it."""
        try:
            sent: Sent = await self.producer.send(self.topic, self.to_value(number))
        except KafkaError:
            return None
        return sent


async def fire_and_forget(sender: Sender, numbers: Iterable[int]) -> None:
    for number in numbers:
        sent = await sender.hand_over(number)
        if sent is not None:
            sent.add_done_callback(forget)
            sender.believed.add(number)


def forget(sent: Sent) -> None:
    """Otherwise asyncio logs the errors that are not asked for."""
    if not sent.cancelled():
        sent.exception()


async def wait_for_each(sender: Sender, numbers: Iterable[int]) -> None:
    for number in numbers:
        sent = await sender.hand_over(number)
        if sent is not None:
            await asyncio.wait([sent])
            note(sender, number, sent)


async def call_back(sender: Sender, numbers: Iterable[int]) -> None:
    for number in numbers:
        sent = await sender.hand_over(number)
        if sent is not None:
            sent.add_done_callback(partial(note, sender, number))


def note(sender: Sender, number: int, sent: Sent) -> None:
    if sent.exception() is None:
        sender.believed.add(number)


async def send_again_by_hand(sender: Sender, numbers: Iterable[int]) -> None:
    """What has failed comes again, behind all that was sent meanwhile."""
    left = list(numbers)
    for _ in range(ROUNDS_MAX):
        sent = {number: await sender.hand_over(number) for number in left}
        await asyncio.wait([each for each in sent.values() if each is not None])
        for number, each in sent.items():
            if each is not None:
                note(sender, number, each)
        left = [number for number in left if number not in sender.believed]
        if not left:
            return


Way = Callable[[Sender, Iterable[int]], Awaitable[None]]

FIRE = "fire and forget"
WAIT = "wait for each"
CALL_BACK = "callback"
BY_HAND = "again by hand"
WAYS: Mapping[str, Way] = {
    FIRE: fire_and_forget,
    WAIT: wait_for_each,
    CALL_BACK: call_back,
    BY_HAND: send_again_by_hand,
}
