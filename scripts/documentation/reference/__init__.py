"""The reference: pages that are generated from what programs themselves read.

They are made at each build of the site and are in no repository, so none is older than the code.
"""

from collections.abc import Mapping

from scripts.documentation.pages import ABOUT_PAGES
from scripts.documentation.reference import events, http, settings, topics, verbs

FOLDER = "reference"
ABOUT_ALL = "search: {boost: 1.5} # more than decisions, less than guides\n"


def generate() -> Mapping[str, str]:
    """Return the text of each page by its path, and of what is said about all of them."""
    pages = {
        "settings": settings.write(),
        "verbs": verbs.write(),
        "topics": topics.write(),
        "events": events.write(),
        **http.write(),
    }
    texts = {f"{FOLDER}/{name}.md": text for name, text in pages.items()}
    return {f"{FOLDER}/{ABOUT_PAGES}": ABOUT_ALL, **texts}
