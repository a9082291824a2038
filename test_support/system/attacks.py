"""Requests that a user, or any caller, must not make; each with the response it must get."""

import json
from dataclasses import dataclass
from typing import Any

USERS, ORDERS, ANALYTICS = "users-api", "orders-api", "analytics-api"
MOVE = {"address": "SH"}
ORDER = {"user_id": "{victim}", "lines": [{"item_id": "{item}", "quantity": 1}]}
THING = {"name": "thing", "type": "phone", "origin": "BJ", "price": "10.00"}
LIMIT = {"credit_limit": "9999999999.99"}
DEEP = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A request, and the status and code that refuse it; `code` None matches any."""

    name: str
    caller: str = "attacker"
    method: str = "GET"
    service: str = USERS
    path: str
    headers: tuple[tuple[bytes, bytes], ...] = ()
    content: bytes | None = None
    body: Any = None
    status: int
    code: str | None = None


def not_yours(name: str, method: str, service: str, path: str, body: Any = None) -> Attack:
    return Attack(
        name=name,
        method=method,
        service=service,
        path=path,
        body=body,
        status=403,
        code="not-yours",
    )


def not_allowed(
    name: str, method: str, service: str, path: str, body: Any = None, caller: str = "attacker"
) -> Attack:
    return Attack(
        name=name,
        caller=caller,
        method=method,
        service=service,
        path=path,
        body=body,
        status=403,
        code="insufficient-scope",
    )


def no_such_order(name: str, method: str, path: str, body: Any = None) -> Attack:
    return Attack(
        name=name,
        method=method,
        service=ORDERS,
        path=path,
        body=body,
        status=404,
        code="unknown-order",
    )


def no_such_id(name: str, path: str) -> Attack:
    return Attack(name=name, path=path, status=422, code="invalid-request")


AGAINST_OTHERS = [
    not_yours("read a profile", "GET", USERS, "/v1/users/{victim}"),
    not_yours("read a history", "GET", USERS, "/v1/users/{victim}/events"),
    not_yours("move another user", "POST", USERS, "/v1/users/{victim}/moves", MOVE),
    not_yours("delete another user", "DELETE", USERS, "/v1/users/{victim}"),
    not_yours("order for another user", "POST", ORDERS, "/v1/orders", ORDER),
    not_yours("list another user's orders", "GET", ORDERS, "/v1/orders?user_id={victim}"),
    not_yours("two filters", "GET", ORDERS, "/v1/orders?user_id={attacker}&user_id={victim}"),
    not_yours("read a credit", "GET", USERS, "/v1/users/{victim}/credits/{order}"),
    not_yours("read an hour", "GET", ANALYTICS, "/v1/hours/2016-11-11T00:00:00Z/users/{victim}"),
    no_such_id("a user by another form of the id", "/v1/users/urn:uuid:{victim}"),
    no_such_id("an id in braces", "/v1/users/%7B{victim}%7D"),
    no_such_order("read an order", "GET", "/v1/orders/{order}"),
    no_such_order("wait for an order", "GET", "/v1/orders/{order}?wait=30"),
    no_such_order("read an order's history", "GET", "/v1/orders/{order}/events"),
    no_such_order("read an order's journey", "GET", "/v1/orders/{order}/journey"),
    no_such_order("cancel an order", "POST", "/v1/orders/{order}/cancel", {"reason": "other"}),
    not_allowed("raise the own limit", "PUT", USERS, "/v1/users/{attacker}/credit-limit", LIMIT),
    not_allowed("raise another's limit", "PUT", USERS, "/v1/users/{victim}/credit-limit", LIMIT),
    not_allowed("list all users", "GET", USERS, "/v1/users"),
    not_allowed("find neighbours", "GET", USERS, "/v1/users?address=BJ"),
    not_allowed("list an item", "POST", ORDERS, "/v1/items", THING),
    not_allowed(
        "make it cheap", "POST", ORDERS, "/v1/items/{item}/price-changes", {"price": "0.01"}
    ),
    not_allowed("move it", "POST", ORDERS, "/v1/items/{item}/origin-corrections", {"origin": "SH"}),
    not_allowed("delist it", "DELETE", ORDERS, "/v1/items/{item}"),
    not_allowed("read hours", "GET", ANALYTICS, "/v1/hours"),
    not_allowed("read one hour", "GET", ANALYTICS, "/v1/hours/2016-11-11T00:00:00Z"),
    not_allowed("read the status", "GET", ANALYTICS, "/v1/status"),
    not_allowed("listen to hours", "GET", ANALYTICS, "/v1/stream"),
    not_allowed("a clerk reads hours", "GET", ANALYTICS, "/v1/hours", caller="clerk"),
    not_allowed("an analyst moves", "POST", USERS, "/v1/users/{victim}/moves", MOVE, "analyst"),
    not_allowed("an analyst deletes", "DELETE", USERS, "/v1/users/{victim}", None, "analyst"),
    not_allowed("an analyst orders", "POST", ORDERS, "/v1/orders", ORDER, "analyst"),
    not_allowed(
        "an analyst cancels",
        "POST",
        ORDERS,
        "/v1/orders/{order}/cancel",
        {"reason": "other"},
        "analyst",
    ),
    not_allowed("an analyst lists an item", "POST", ORDERS, "/v1/items", THING, "analyst"),
    not_allowed(
        "an analyst reprices",
        "POST",
        ORDERS,
        "/v1/items/{item}/price-changes",
        {"price": "1.00"},
        "analyst",
    ),
    Attack(
        name="headers of a proxy",
        path="/v1/users/{victim}",
        headers=(
            (b"X-Forwarded-For", b"127.0.0.1"),
            (b"X-Forwarded-User", b"clerk"),
            (b"X-Original-URL", b"/v1/users/{attacker}"),
        ),
        status=403,
        code="not-yours",
    ),
    *(
        Attack(
            name=f"override by {header.decode()}",
            method="POST",
            path="/v1/users/{victim}",
            headers=((header, b"DELETE"),),
            body={},
            status=405,
        )
        for header in (b"X-HTTP-Method-Override", b"X-HTTP-Method", b"X-Method-Override")
    ),
    Attack(
        name="override in the query",
        method="POST",
        path="/v1/users/{victim}?_method=DELETE",
        body={},
        status=405,
    ),
]
"""Sent by a user unless stated otherwise."""


def malformed(name: str, body: Any = None, **more: Any) -> Attack:
    """A malformed move of the victim, sent by a clerk, who has the right to it."""
    given: dict[str, Any] = {"status": 422, "code": "invalid-request", "body": body} | more
    path = given.pop("path", "/v1/users/{victim}/moves")
    return Attack(name=name, caller="clerk", method="POST", path=path, **given)


def unknown(name: str, path: str, service: str = USERS, status: int = 404) -> Attack:
    return Attack(name=name, caller="clerk", service=service, path=path, status=status)


def query(name: str, path: str, service: str = USERS) -> Attack:
    return Attack(
        name=name, caller="clerk", service=service, path=path, status=422, code="invalid-request"
    )


def raw(text: str) -> bytes:
    return text.encode()


NO_JSON: dict[str, Any] = {"status": 415, "code": "unsupported-media-type"}

MALFORMED = [
    malformed("no body"),
    malformed("not JSON", content=b"{"),
    malformed("empty object", {}),
    malformed("a list", []),
    malformed("an unknown field", MOVE | {"is_admin": True}),
    malformed("a field of Python", MOVE | {"__class__": "x"}),
    malformed("an object as text", {"address": {"$ne": None}}),
    malformed("a long text", {"address": "B" * 33}),
    malformed("U+0000 in a text", {"address": "B\0J"}),
    malformed("a control character in a text", {"address": "B\r\nJ"}),
    malformed("half of a surrogate pair", content=b'{"address": "\\ud800"}'),
    malformed("half of a pair in a name", content=b'{"address": "SH", "\\ud800": 1}'),
    malformed("a number as text", {"address": 5}),
    malformed("a number as time", MOVE | {"effective_at": 5}),
    malformed("a time too early", MOVE | {"effective_at": "0001-01-01T00:00:00+14:00"}),
    malformed("a time too late", MOVE | {"effective_at": "9999-12-31T23:59:59Z"}),
    malformed("NaN", content=b'{"address": "SH", "effective_at": NaN}'),
    malformed("infinity", content=b'{"address": "SH", "effective_at": 1e999}'),
    malformed("bytes that are no text", content=b'{"address": "\xff\xfe"}', status=400, code=None),
    malformed(
        "a huge number",
        content=b'{"address": "SH", "effective_at": ' + b"9" * 20_000 + b"}",
        status=400,
        code=None,
    ),
    malformed("a deep list", content=b"[" * DEEP + b"]" * DEEP, status=400, code=None),
    malformed("a deep object", content=b'{"a":' * 10_000, status=400, code=None),
    malformed(
        "a large body",
        content=b'{"address": "' + b"x" * 70_000 + b'"}',
        status=413,
        code="body-too-large",
    ),
    malformed(
        "the last of equal keys counts, and lives there",
        content=b'{"address": "SH", "address": "BJ"}',
        status=409,
        code="same-address",
    ),
    malformed(
        "a form", content=b"address=SH", headers=((b"Content-Type", b"text/plain"),), **NO_JSON
    ),
    malformed(
        "JSON that says it is none",
        content=raw(json.dumps(MOVE)),
        headers=((b"Content-Type", b"text/plain"),),
        **NO_JSON,
    ),
    malformed(
        "JSON as a form",
        content=raw(json.dumps(MOVE)),
        headers=((b"Content-Type", b"application/x-www-form-urlencoded"),),
        **NO_JSON,
    ),
    malformed(
        "a multipart body",
        content=b"--x\r\n\r\n--x--",
        headers=((b"Content-Type", b"multipart/form-data; boundary=x"),),
        **NO_JSON,
    ),
    malformed(
        "XML with an entity",
        content=b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
        headers=((b"Content-Type", b"application/xml"),),
        **NO_JSON,
    ),
    malformed(
        "an idempotency key too long",
        MOVE,
        headers=((b"Idempotency-Key", b"k" * 256),),
        status=400,
        code="malformed-idempotency-key",
    ),
    malformed(
        "an idempotency key of no ASCII",
        MOVE,
        headers=((b"Idempotency-Key", b"\xc3\xa9"),),
        status=400,
        code="malformed-idempotency-key",
    ),
    malformed(
        "a version too large",
        MOVE,
        headers=((b"If-Match", b'"99999999999999999999"'),),
        status=412,
        code="version-conflict",
    ),
    malformed(
        "SQL as a version",
        MOVE,
        headers=((b"If-Match", b'"1"; DROP TABLE events'),),
        status=400,
        code="malformed-if-match",
    ),
    malformed("SQL as an id", MOVE, path="/v1/users/1' OR '1'='1/moves"),
    malformed("digits of another script", MOVE, path="/v1/users/\u0661\u0662/moves"),
    malformed("a negative price", THING | {"price": "-1.00"}, service=ORDERS, path="/v1/items"),
    malformed("a price of NaN", THING | {"price": "NaN"}, service=ORDERS, path="/v1/items"),
    malformed("a price in words", THING | {"price": "1e9"}, service=ORDERS, path="/v1/items"),
    malformed(
        "a quantity too large",
        ORDER | {"lines": [{"item_id": "{item}", "quantity": 2**63}]},
        service=ORDERS,
        path="/v1/orders",
    ),
    malformed(
        "a negative quantity",
        ORDER | {"lines": [{"item_id": "{item}", "quantity": -1}]},
        service=ORDERS,
        path="/v1/orders",
    ),
    malformed(
        "a hundred and one lines",
        ORDER | {"lines": [{"item_id": "{item}", "quantity": 1}] * 101},
        service=ORDERS,
        path="/v1/orders",
    ),
    malformed("no line", ORDER | {"lines": []}, service=ORDERS, path="/v1/orders"),
    query("a page too large", "/v1/users?limit=1000000"),
    query("a page of 64 bits", "/v1/users?limit=9223372036854775808"),
    query("a negative page", "/v1/users?limit=-1"),
    query("SQL as a cursor", "/v1/users?after=1' OR '1'='1"),
    query("SQL as a filter", "/v1/orders?status=pending' OR '1'='1", ORDERS),
    query("a version of 64 bits", "/v1/users/{victim}/events?after=9223372036854775808"),
    query("U+0000 in a filter", "/v1/users?address=%00"),
    query("a wait of NaN", "/v1/orders/{order}?wait=nan", ORDERS),
    query("an infinite wait", "/v1/orders/{order}?wait=inf", ORDERS),
    query("a wait beyond numbers", "/v1/orders/{order}?wait=1e309", ORDERS),
    query("U+0000 in an id", "/v1/users/%00"),
    query("an id that is too long", "/v1/users/" + "a" * 5_000),
    query("a folder above", "/v1/users/..%252f..%252fetc%252fpasswd"),
    unknown("an item is no order", "/v1/orders/{item}", ORDERS),
    unknown("an item has no order's history", "/v1/orders/{item}/events", ORDERS),
    unknown("an order is no item", "/v1/items/{order}", ORDERS),
    unknown("an order has no item's history", "/v1/items/{order}/events", ORDERS),
    unknown("two slashes", "//v1/users/{victim}"),
    unknown("a slash behind", "/v1/users/{victim}/"),
    unknown("another version", "/v2/users/{victim}"),
    unknown("capital letters", "/V1/USERS/{victim}"),
    unknown("a file", "/etc/passwd"),
    unknown("the other documentation", "/redoc"),
    Attack(
        name="an item is cancelled",
        caller="clerk",
        method="POST",
        service=ORDERS,
        path="/v1/orders/{item}/cancel",
        body={"reason": "other"},
        status=404,
        code="unknown-order",
    ),
    Attack(
        name="an order is repriced",
        caller="clerk",
        method="POST",
        service=ORDERS,
        path="/v1/items/{order}/price-changes",
        body={"price": "1.00"},
        status=404,
        code="unknown-item",
    ),
    *(
        Attack(
            name=f"the method {method}",
            caller="clerk",
            method=method,
            path="/v1/users/{victim}",
            status=405,
            code="method-not-allowed",
        )
        for method in ("PATCH", "PUT", "TRACE", "PROPFIND", "OPTIONS")
    ),
]
"""Sent by a clerk, who has all rights."""
