"""The page of verbs: those of the Makefile, as `make help` prints them."""

import re

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
    verbs = VERB.findall((CHECKOUT / "Makefile").read_text())
    return table(("verb", "what it does"), ((code(f"make {verb}"), does) for verb, does in verbs))
