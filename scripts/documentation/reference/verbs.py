"""The page of verbs: those of the Makefile, as `make help` prints them."""

import re
from collections.abc import Mapping

from scripts.changes import CHECKOUT
from scripts.documentation.markdown import code, join_parts, table

VERB = re.compile(r"^([a-z0-9-]+):.*?## (.*)$", re.MULTILINE)


def write() -> str:
    return join_parts(
        "# Verbs: the commands of make",
        "People and continuous integration call the same verbs. A variable such as `name=users`"
        " stands after the verb; with `in=containers` or `in=cluster`, a verb that is about a stack"
        " is about the one that runs in this way.",
        list_verbs(),
    )


def list_verbs() -> str:
    """Return the table of the verbs with their help."""
    rows = ((code(f"make {verb}"), does) for verb, does in read_verbs().items())
    return table(("verb", "what it does"), rows)


def read_verbs() -> Mapping[str, str]:
    """Return the help of each verb."""
    return dict(VERB.findall((CHECKOUT / "Makefile").read_text()))
