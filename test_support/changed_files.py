"""Files of a copy that a test changes."""

from pathlib import Path


def change(path: Path, old: str, new: str) -> None:
    """Replace a text in a file, which must have it."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
