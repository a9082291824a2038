"""Reads the Compose files."""

from pathlib import Path
from typing import Any

import yaml


class ComposeLoader(yaml.SafeLoader):
    """Reads Compose's own tags as what follows them."""


ComposeLoader.add_multi_constructor(
    "!", lambda loader, suffix, node: loader.construct_sequence(node, deep=True)
)


def read_compose(file: Path) -> dict[str, Any]:
    return dict(yaml.load(file.read_text(), ComposeLoader))
