"""What routes need of the process: its resources, and a listener's place at the feed."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from analytics_spark.serving.bootstrap import Resources
from analytics_spark.serving.stream import LISTENERS_MAX, Feed, TooManyListeners
from shared.web.problems import HttpProblem

TOO_MANY_LISTENERS = "too-many-listeners"


async def resources_of(request: Request) -> Resources:
    resources: Resources = request.app.state.resources
    return resources


ResourcesDep = Annotated[Resources, Depends(resources_of)]


async def reserve_feed_slot(service: ResourcesDep) -> AsyncIterator[Feed]:
    """A listener's place, for as long as the stream."""
    try:
        with service.feed.listening():
            yield service.feed
    except TooManyListeners:
        detail = f"there are {LISTENERS_MAX} listeners, try again"
        raise HttpProblem(503, TOO_MANY_LISTENERS, detail) from None


FeedSlot = Annotated[Feed, Depends(reserve_feed_slot)]
