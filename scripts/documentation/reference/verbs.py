"""The verbs of the Makefile, with their comments, as `make help` prints them."""

import re
from collections.abc import Mapping

from local_stack.settings import CHECKOUT
from scripts.documentation.reference.tables import code, sections, table

VERB = re.compile(r"^([a-z0-9-]+):.*## (.*)$", re.MULTILINE)


def read_verbs() -> Mapping[str, str]:
    """The comment of each verb."""
    return dict(VERB.findall((CHECKOUT / "Makefile").read_text()))


def write() -> str:
    rows = [(code(f"make {verb}"), comment) for verb, comment in read_verbs().items()]
    return sections(
        "# Verbs of make",
        "Continuous integration calls these verbs too. With `in=containers`, a verb"
        " is about the stack that runs in that way.",
        table(("verb", "does"), rows),
    )
