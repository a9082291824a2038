"""Conditional requests (RFC 9110, section 13): what `If-Match` and `If-None-Match` demand."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shared.web.auth import Headers
from shared.web.problems import HttpProblem

IF_MATCH = "If-Match"
IF_NONE_MATCH = "If-None-Match"
ANY = "*"

ENTITY_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_ELEMENT = rf"[ \t]*(?:{ENTITY_TAG.pattern}[ \t]*)?"
TAG_LIST = re.compile(rf"{_ELEMENT}(?:,{_ELEMENT})*")
"""Empty elements are allowed (RFC 9110, section 5.6.1.2)."""

VERSION_CONFLICT = "version-conflict"
"""The code of a precondition that does not hold, and of a lost race."""

UNTAGGED = ""
"""In place of the entity tag of a resource that has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preconditions:
    """The entity tags in each header, or ANY alone; None without the header.

    Our own tags are strong. A weak one never matches as `If-Match`; those of `If-None-Match` are
    compared without their `W/`.
    """

    if_match: frozenset[str] | None = None
    if_none_match: frozenset[str] | None = None

    def is_matched(self, tag: str | None) -> bool:
        """Whether `If-Match` holds for the resource with this entity tag; None: there is none."""
        return self.if_match is None or includes(self.if_match, tag)

    def is_unmatched(self, tag: str | None) -> bool:
        """Whether `If-None-Match` holds."""
        return self.if_none_match is None or not includes(self.if_none_match, tag)

    def hold_for(self, tag: str | None) -> bool:
        """Whether both hold."""
        return self.is_matched(tag) and self.is_unmatched(tag)


NO_PRECONDITIONS = Preconditions()


def includes(tags: frozenset[str], tag: str | None) -> bool:
    return tag is not None and (ANY in tags or tag in tags)


def read_preconditions(headers: Headers) -> Preconditions:
    """The preconditions of a request. Raises HttpProblem: a header is malformed."""
    if_match = [value for name, value in headers if name == b"if-match"]
    if_none_match = [value for name, value in headers if name == b"if-none-match"]
    if not if_match and not if_none_match:
        return NO_PRECONDITIONS
    weak = parse_tags(IF_NONE_MATCH, if_none_match)
    return Preconditions(
        if_match=parse_tags(IF_MATCH, if_match),
        if_none_match=weak and frozenset(tag.removeprefix("W/") for tag in weak),
    )


def parse_tags(name: str, lines: Sequence[bytes]) -> frozenset[str] | None:
    """The entity tags in all lines of a header. Raises HttpProblem: it is malformed."""
    if not lines:
        return None
    text = b",".join(lines).decode("latin-1")
    if text.strip(" \t") == ANY:
        return frozenset({ANY})
    if not TAG_LIST.fullmatch(text):
        detail = f'{name} must be * or a list of entity tags such as "1"'
        raise HttpProblem(400, f"malformed-{name.lower()}", detail)
    return frozenset(ENTITY_TAG.findall(text))
