"""The HTTP edge of a service: authentication, limits, problems, and repeatable requests.

Comes in: HTTP requests with a bearer token, an Idempotency-Key and conditions on entity tags.
Goes out: commands to `eventsourcing` (`write_requests`), responses, problem documents (RFC 9457),
an OpenAPI document, health checks, request spans.
Guarantees: no request without a valid token and scope (`tests/unit/test_auth.py`); slow, large and
too many requests are bounded (`tests/integration/test_connections.py`,
`tests/unit/test_limits.py`);
conditions, HEAD and media types mean on every route what RFC 9110 says
(`tests/unit/test_http_rules.py`, `tests/unit/test_preconditions.py`);
a repeated request is answered from its stored response, which is kept for 72 hours
(`tests/integration/test_idempotency.py`); an unavailable database is a 503 that can be retried
(`tests/unit/test_outages.py`).
Read `http.py` first, then `write_requests.py`.
"""
