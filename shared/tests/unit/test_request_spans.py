"""The span of a request: its name, its parent, its errors; and requests without a span."""

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import SpanKind, StatusCode

from shared.runtime import telemetry
from shared.web.request_spans import RequestSpans

CALLER = f"00-{'a' * 32}-{'b' * 16}-01"
NOT_RECORDED = f"00-{'a' * 32}-{'b' * 16}-00"


@pytest.fixture
def client() -> httpx.AsyncClient:
    app = FastAPI(telemetry={"tracing": False, "metrics": False, "logs": False})

    @app.get("/things/{name}")
    async def thing(name: str) -> str | None:
        with telemetry.inner_span("inner"):
            return telemetry.current_traceparent()

    @app.get("/refused")
    async def refused() -> None:
        raise HTTPException(409)

    @app.get("/unavailable")
    async def unavailable() -> None:
        raise HTTPException(503)

    @app.get("/broken")
    async def broken() -> None:
        raise ZeroDivisionError("a secret of the code")

    @app.get("/health/live")
    async def live() -> None:
        """Probes request it every second."""

    app.add_middleware(RequestSpans)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://test:81")


def span_of(spans: InMemorySpanExporter) -> ReadableSpan:
    return spans.get_finished_spans()[-1]


async def test_a_span_is_named_after_the_route(
    client: httpx.AsyncClient, spans: InMemorySpanExporter
) -> None:
    await client.get("/things/one", params={"colour": "red"})

    span = span_of(spans)
    assert (span.name, span.kind) == ("GET /things/{name}", SpanKind.SERVER)
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/things/{name}",
        "network.protocol.version": "1.1",
        "server.address": "test",
        "server.port": 81,
        "url.path": "/things/one",
        "url.query": "colour=red",
        "url.scheme": "http",
    }


async def test_a_span_continues_the_trace_of_the_caller(
    client: httpx.AsyncClient, spans: InMemorySpanExporter
) -> None:
    await client.get("/things/one", headers={"traceparent": CALLER, "tracestate": "a=b"})

    inner, span = spans.get_finished_spans()
    assert span.parent is not None
    assert inner.parent == span.context
    assert (span.context.trace_id, span.parent.span_id) == (int("a" * 32, 16), int("b" * 16, 16))
    assert span.context.trace_state["a"] == "b"


async def test_two_parents_are_none(client: httpx.AsyncClient, spans: InMemorySpanExporter) -> None:
    for other in (CALLER, f"00-{'c' * 32}-{'d' * 16}-01", ""):
        await client.get("/things/one", headers=[("traceparent", CALLER), ("traceparent", other)])

        assert span_of(spans).parent is None


async def test_a_trace_state_can_have_several_lines(
    client: httpx.AsyncClient, spans: InMemorySpanExporter
) -> None:
    headers = [("tracestate", "a=b"), ("traceparent", CALLER), ("tracestate", "c=d,e=f")]

    await client.get("/things/one", headers=headers)

    state = span_of(spans).context.trace_state
    assert dict(state) == {"a": "b", "c": "d", "e": "f"}


@pytest.mark.parametrize(
    ("path", "status", "error_type"),
    [
        ("/refused", 409, None),
        ("/nowhere", 404, None),
        ("/unavailable", 503, "503"),
        ("/broken", 500, "ZeroDivisionError"),
    ],
)
async def test_an_error_of_the_server_is_an_error_of_the_span(
    client: httpx.AsyncClient,
    spans: InMemorySpanExporter,
    path: str,
    status: int,
    error_type: str | None,
) -> None:
    assert (await client.get(path)).status_code == status

    span = span_of(spans)
    attributes = dict(span.attributes or {})
    assert attributes["http.response.status_code"] == status
    assert attributes.get("error.type") == error_type
    assert (span.status.status_code is StatusCode.ERROR) == (error_type is not None)
    assert not span.events


async def test_no_span_name_contains_a_method_that_a_client_invented(
    client: httpx.AsyncClient, spans: InMemorySpanExporter
) -> None:
    await client.request("BREW", "/nowhere/at/all")

    span = span_of(spans)
    assert span.name == "HTTP"
    assert dict(span.attributes or {})["http.request.method"] == "_OTHER"


@pytest.mark.parametrize("query", ["access_token=x", "api_key=x", "%74oken=x", "a=1&Password=x"])
async def test_a_secret_in_the_query_is_hidden(
    client: httpx.AsyncClient, spans: InMemorySpanExporter, query: str
) -> None:
    await client.get(f"/things/one?{query}")

    assert dict(span_of(spans).attributes or {})["url.query"] == "REDACTED"


async def test_health_checks_have_no_span(
    client: httpx.AsyncClient, spans: InMemorySpanExporter
) -> None:
    await client.get("/health/live")

    assert not spans.get_finished_spans()


async def test_the_context_of_an_unsampled_trace_is_still_propagated(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(ParentBased(ALWAYS_OFF))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "tracer", provider.get_tracer("test"))

    answer = await client.get("/things/one", headers={"traceparent": NOT_RECORDED})

    traceparent = answer.json()
    assert traceparent.startswith(f"00-{'a' * 32}-")
    assert traceparent.endswith("-00")
    assert not exporter.get_finished_spans()
    assert not trace.get_current_span().get_span_context().is_valid
