"""What all pages have in common: what a browser may not do, and how a time span is written."""

from collections.abc import Mapping

POLICY: Mapping[str, str] = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
"""The Content-Security-Policy of a page without forms: nothing from elsewhere, nothing inline."""


def create_headers(policy: Mapping[str, str]) -> dict[str, str]:
    """The headers of a page; `policy` adds directives to POLICY, or replaces them."""
    directives = {**POLICY, **policy}
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": "; ".join(
            f"{name} {sources}" for name, sources in directives.items()
        ),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


def format_time_span(seconds: int) -> str:
    """A time span in its largest unit."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"
