"""The whole system runs in the environment of other programs, and sends nothing to their proxy."""

import httpx
import pytest

from test_support.system.clients import Hometown
from test_support.system.foreign import Proxy, listening_proxy
from test_support.system.sample import Sample


def test_no_request_and_no_span_is_sent_to_a_proxy(
    hometown: Hometown, sample: Sample, proxy: Proxy
) -> None:
    """Requests to it had the callers' tokens."""
    order = sample.orders["Jack", "iphone"]

    journey = hometown.journey(order["order_id"])

    assert journey["unknown"] == []
    assert proxy.received == []


def test_a_client_that_heeds_the_environment_sends_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    with listening_proxy() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises(httpx.HTTPError):
            httpx.get("http://127.0.0.1:1/v1/users", headers={"Authorization": "Bearer x"})

    [request] = proxy.received
    assert b"Bearer x" in request
