"""ApproveThing over HTTP: its event, and its refusals."""

from pathlib import Path
from uuid import uuid4

import httpx

from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.messaging.messages import Metadata
from shared.runtime.identifiers import new_id
from things_svc.bootstrap import Resources
from things_svc.events import CODEC, ThingApproved

SAMPLE = Path(__file__).parents[1] / "unit/samples/thing-added.v1.json"

FIRST = CODEC.decode("thing-added", SAMPLE.read_bytes(), 1)
ADDRESS = f"/v1/things/{FIRST.thing_id}/approve"


async def test_its_event_is_recorded(client: httpx.AsyncClient, resources: Resources) -> None:
    metadata = Metadata(correlation_id=new_id(), causation_id=new_id())
    await resources.things.append(FIRST.thing_id, 0, [FIRST], metadata=metadata)

    answer = await client.post(ADDRESS)

    assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')
    [_, recorded] = await resources.things.read(FIRST.thing_id)
    assert recorded.event == ThingApproved(thing_id=FIRST.thing_id)


async def test_an_unknown_thing_is_not_found(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"/v1/things/{uuid4()}/approve")

    assert (answer.status_code, answer.json()["code"]) == (404, "unknown-thing")


async def test_a_caller_who_is_limited_is_refused(
    transport: httpx.ASGITransport, issuing: RunFolder
) -> None:
    headers = bearer(issuing, "user", str(uuid4()))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://things", headers=headers
    ) as user:
        assert (await user.post(ADDRESS)).status_code == 403
