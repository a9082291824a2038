"""The environment that programs inherit: settings that are documented, and little else.

A variable of another program, such as a proxy, a default of PostgreSQL's clients or an option of
Java, must not change what ours do: a proxy would be sent the tokens of callers.
"""

import os
import re
from collections.abc import Mapping
from functools import cache

from fetching.settings import INFRA

SYSTEM = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}
)
"""What any program may need; the last one to find the library of the interpreter."""
PREFIXES = ("LC_", "XDG_", "HOMETOWN_")

OF_DOWNLOADS = re.compile(r"((HTTPS?|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)|GO[A-Z]+)", re.IGNORECASE)
"""What only downloads, and a build of Jaeger, need besides."""

JAVA_OPTIONS = "HOMETOWN_JAVA_OPTIONS"
DOCUMENTED = re.compile(r"^#([A-Z_]+)=", re.MULTILINE)


@cache
def find_documented() -> frozenset[str]:
    """The settings in `.env.example`."""
    return frozenset(DOCUMENTED.findall((INFRA.parent / ".env.example").read_text()))


def is_inherited(name: str) -> bool:
    return name in SYSTEM or name.startswith(PREFIXES) or name in find_documented()


def inherit(caller: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of the caller's environment that a program gets."""
    kept = {name: value for name, value in caller.items() if is_inherited(name)}
    options = kept.get(JAVA_OPTIONS)
    return kept | ({"JDK_JAVA_OPTIONS": options} if options else {})


def inherit_for_downloads(caller: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a download gets besides."""
    return {name: value for name, value in caller.items() if OF_DOWNLOADS.fullmatch(name)}
