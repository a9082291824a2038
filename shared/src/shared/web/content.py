"""The content of requests, the same for every route: JSON (RFC 8259) in UTF-8, not compressed."""

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.web.limits import get_content_length
from shared.web.problems import HttpProblem, to_problem_response

UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
JSON = "application/json"
CHARSETS = frozenset({"utf-8", "utf8", "us-ascii"})
"""Names of UTF-8 and of its part; JSON has no other encoding."""


class JsonContent:
    """Refuses content of another media type, encoding or coding than the routes can read.

    Content of a method that has none by definition is ignored.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in {"POST", "PUT", "PATCH"}:
            try:
                demand_json(scope)
            except HttpProblem as error:
                return await to_problem_response(error)(scope, receive, send)
            receive = reject_wide_characters(receive)
        return await self.app(scope, receive, send)


def demand_json(scope: Scope) -> None:
    """Raises HttpProblem: the request has content that is not declared as plain JSON."""
    values: dict[bytes, list[str]] = {}
    for name, value in scope["headers"]:
        values.setdefault(name, []).append(value.decode("latin-1").strip().lower())
    if b"transfer-encoding" not in values and not get_content_length(scope):
        return
    codings = values.get(b"content-encoding", [])
    if any(coding not in {"", "identity"} for coding in codings):
        raise unsupported("the content must not be compressed", "Accept-Encoding", "identity")
    types = values.get(b"content-type", [])
    if len(types) != 1 or not is_json(types[0]):
        raise unsupported(f"the content must be {JSON}, in UTF-8", "Accept", JSON)


def unsupported(detail: str, header: str, value: str) -> HttpProblem:
    return HttpProblem(415, UNSUPPORTED_MEDIA_TYPE, detail, {header: value})


def is_json(content_type: str) -> bool:
    """Whether a `Content-Type` in small letters is that of JSON in UTF-8."""
    media_type, *parameters = (part.strip() for part in content_type.split(";"))
    declared = [text for text in parameters if text.startswith("charset=")]
    charsets = {text.removeprefix("charset=").strip('"') for text in declared}
    return media_type == JSON and charsets <= CHARSETS


def reject_wide_characters(receive: Receive) -> Receive:
    """Refuse UTF-16 and UTF-32, which Python's `json` would recognize by their zero bytes.

    JSON in UTF-8 has none: in a text it is written as an escape. Other bytes that are not UTF-8 are
    refused where they are parsed.
    """

    async def receive_utf_8() -> Message:
        message = await receive()
        if b"\0" in message.get("body", b""):
            raise HTTPException(400, "the content must be in UTF-8")
        return message

    return receive_utf_8
