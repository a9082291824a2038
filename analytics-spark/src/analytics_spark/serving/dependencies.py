"""FastAPI dependencies: the resources of the process, and a slot of the feed."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from analytics_spark.serving.bootstrap import Resources
from analytics_spark.serving.stream import LISTENERS_MAX, VISITORS_MAX, Feed, TooManyListeners
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
        raise too_many_listeners(LISTENERS_MAX) from None


async def reserve_visitor_slot(service: ResourcesDep) -> AsyncIterator[Feed]:
    """The same for a stream without a token, of which there can be fewer."""
    try:
        with service.feed.reserve_visitor_slot():
            yield service.feed
    except TooManyListeners:
        raise too_many_listeners(VISITORS_MAX) from None


def too_many_listeners(listeners_max: int) -> HttpProblem:
    detail = f"limit: {listeners_max} streams at a time; retry"
    return HttpProblem(503, TOO_MANY_LISTENERS, detail)


FeedSlot = Annotated[Feed, Depends(reserve_feed_slot)]
VisitorSlot = Annotated[Feed, Depends(reserve_visitor_slot)]
