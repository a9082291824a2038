"""FastAPI dependencies: the resources of the process, and a slot of the feed."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from analytics_spark.serving.bootstrap import Resources
from analytics_spark.serving.stream import LISTENERS_MAX, Feed, TooManyListeners
from shared.web.problems import HttpProblem

TOO_MANY_LISTENERS = "too-many-listeners"


async def get_resources(request: Request) -> Resources:
    resources: Resources = request.app.state.resources
    return resources


ResourcesDep = Annotated[Resources, Depends(get_resources)]


async def reserve_feed_slot(service: ResourcesDep) -> AsyncIterator[Feed]:
    """Reserve a slot of the feed for the duration of the stream. Raises HttpProblem 503."""
    try:
        with service.feed.reserve_slot():
            yield service.feed
    except TooManyListeners:
        detail = f"limit: {LISTENERS_MAX} streams at a time; retry"
        raise HttpProblem(503, TOO_MANY_LISTENERS, detail) from None


FeedSlot = Annotated[Feed, Depends(reserve_feed_slot)]
