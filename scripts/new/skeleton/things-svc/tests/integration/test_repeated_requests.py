"""A repeated request gets the stored response, also if it overtakes the first one on its way."""

from collections.abc import Sequence
from typing import ClassVar

import httpx

from local_stack.run_folder import RunFolder
from shared.runtime.identifiers import new_id
from test_support.repeats import Prepare, RepeatedRequests, WriteRequest
from things_svc import api


async def begin_thing(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    return WriteRequest(route="POST /v1/things", path="/v1/things", json={"name": "first"})


async def rename(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    thing = await (await begin_thing(client, issuing)).send(client, str(new_id()))
    return WriteRequest(
        route="POST /v1/things/{thing_id}/renames",
        path=f"{thing.headers['Location']}/renames",
        json={"name": "other"},
    )


async def approve_thing(client: httpx.AsyncClient, issuing: RunFolder) -> WriteRequest:
    thing = await (await begin_thing(client, issuing)).send(client, str(new_id()))
    return WriteRequest(
        route="POST /v1/things/{thing_id}/approve", path=f"{thing.headers['Location']}/approve"
    )


REQUESTS: Sequence[Prepare] = (begin_thing, rename, approve_thing)


class TestThings(RepeatedRequests):
    routers = (api.router,)
    requests = REQUESTS
    refused: ClassVar = {rename: 409}
