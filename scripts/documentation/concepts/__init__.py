"""Diagrams: pages that are generated from declarations, imports, and what tests expect of a stack.

Like the reference, they are made at each build of the site, and are in no repository.
"""

from collections.abc import Mapping

from scripts.documentation.concepts import modules, order, system
from scripts.documentation.pages import ABOUT_PAGES

FOLDER = "concepts"
ABOUT_ALL = """\
search: {boost: 4} # like guides
hide: [toc] # wide diagrams need its place
"""


def generate() -> Mapping[str, str]:
    """Return the text of each page by its path, and of what is said about all of them."""
    pages = {"system": system.write(), "order": order.write(), "modules": modules.write()}
    texts = {f"{FOLDER}/{name}.md": text for name, text in pages.items()}
    return {f"{FOLDER}/{ABOUT_PAGES}": ABOUT_ALL, **texts}
