"""Dependencies of every route of orders-svc: the opened resources, and the size of a page."""

from typing import Annotated

from fastapi import Depends, Request

from orders_svc.bootstrap import Resources

PAGE_MAX = 200


async def get_resources(request: Request) -> Resources:
    resources: Resources = request.app.state.resources
    return resources


ResourcesDep = Annotated[Resources, Depends(get_resources)]
