"""htmx is as its authors released it."""

import hashlib

import pytest

from shared.web import htmx

VENDORED = {
    "htmx.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    "hx-sse.min.js": "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103",
}
"""Of the release that vendor/NOTICE names."""


@pytest.mark.parametrize("name", VENDORED)
def test_what_others_wrote_is_as_they_released_it(name: str) -> None:
    content = (htmx.FILES / name).read_bytes()

    assert hashlib.sha256(content).hexdigest() == VENDORED[name]
