"""The secrets of a caller are in no log, no trace and no response, also not after an error."""

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from local_stack import issuer
from local_stack.run_folder import RunFolder
from shared.web import request_spans
from test_support.written_log import written_log
from users_svc.bootstrap import Resources

HIDDEN = "correct-horse-battery"


@pytest.fixture
def token(issuing: RunFolder) -> str:
    return issuer.token(issuing, "clerk")


def text_of(span: ReadableSpan) -> str:
    events = [(event.name, dict(event.attributes or {})) for event in span.events]
    return f"{span.name} {dict(span.attributes or {})} {events} {span.status.description}"


async def send_all(client: httpx.AsyncClient, token: str) -> list[httpx.Response]:
    """Requests that succeed, that are refused, and that fail."""
    user = {"name": "Jack", "address": "BJ", "gender": "male", "credit_limit": "1.00"}
    wrong = {"Authorization": f"Bearer {token}{HIDDEN}"}
    basic = {"Authorization": f"Basic {HIDDEN}"}
    return [
        await client.post("/v1/users", json=user),
        await client.post("/v1/users", json=user | {"password": HIDDEN}),
        await client.post("/v1/users", json=user | {"gender": HIDDEN}),
        await client.get("/v1/users", params={"access_token": token}),
        await client.get("/v1/users", params={"password": HIDDEN}),
        await client.get("/v1/users", params={"limit": 0, "client_secret": HIDDEN}),
        await client.get("/v1/users", headers=wrong, params={"id_token": token}),
        await client.get("/v1/users", headers=basic),
        await client.get("/v1/nothing", params={"api_key": HIDDEN}),
    ]


@pytest.mark.usefixtures("spans")
async def test_secrets_are_in_no_log_no_trace_and_no_response(
    client: httpx.AsyncClient,
    resources: Resources,
    token: str,
    spans: InMemorySpanExporter,
) -> None:
    with written_log(log_level="DEBUG") as written:
        answers = await send_all(client, token)
        await resources.pool.execute("DROP TABLE user_profiles")
        answers.append(await client.get("/v1/users", params={"password": HIDDEN}))
        await resources.pool.close()
        answers.append(await client.get("/v1/users", params={"password": HIDDEN}))

    statuses = [answer.status_code for answer in answers]
    assert statuses == [201, 422, 422, 200, 200, 422, 401, 401, 404, 500, 503]
    exported = "\n".join(text_of(span) for span in spans.get_finished_spans())
    said = "\n".join(f"{dict(answer.headers)} {answer.text}" for answer in answers)
    own_log = "\n".join(str(line) for line in written.lines)
    assert "InterfaceError" in own_log
    assert exported.count("http.request.method") == len(answers)
    for text in (exported, said, own_log):
        assert HIDDEN not in text
        assert token.rpartition(".")[2] not in text
    assert "authorization" not in exported.lower()


async def test_without_the_mechanism_a_token_in_the_query_is_in_the_trace(
    client: httpx.AsyncClient,
    token: str,
    spans: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_spans, "contains_secret", lambda query: False)

    await client.get("/v1/users", params={"access_token": token})

    [span] = spans.get_finished_spans()
    assert token in text_of(span)
