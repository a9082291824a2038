"""`parts.toml`: the parts of the project that can be left out."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "parts.toml"
NAME = re.compile(r"[a-z][a-z-]*")
KEYS = frozenset({"title", "paths", "needs", "verbs", "words"})


class PartsError(Exception):
    """The message is one line that names what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the project, and how all that belongs to it is found.

    `paths` are files and folders that are its own, relative to the checkout, or patterns of them.
    `needs` names the parts without which it cannot be. `verbs` are those of the Makefile. `words`
    are regular expressions: a line that one of them matches mentions the part.
    """

    name: str
    title: str
    paths: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def load_parts(root: Path) -> dict[str, Part]:
    """All parts that are still there, by name.

    Raises:
        PartsError: parts.toml is missing or wrong.
    """
    try:
        declared = tomllib.loads((root / FILE).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise PartsError(f"{FILE} cannot be read ({error})") from None
    parts = {name: parse_part(name, table) for name, table in declared.items()}
    for part in parts.values():
        for needed in part.needs:
            if needed not in parts:
                raise PartsError(f"{FILE}: {part.name} needs {needed}, which is no part")
    return parts


def parse_part(name: str, table: Mapping[str, object]) -> Part:
    """
    Raises:
        PartsError: a key is missing or unknown, or a word is no regular expression.
    """
    if not NAME.fullmatch(name) or not isinstance(table, Mapping) or "title" not in table:
        raise PartsError(f"{FILE}: {name} must be a table with a title")
    if unknown := sorted(set(table) - KEYS):
        raise PartsError(f"{FILE}: {name} has {unknown[0]}; a part has {', '.join(sorted(KEYS))}")
    lists = {
        key: read_strings(name, key, table.get(key, []))
        for key in ("paths", "needs", "verbs", "words")
    }
    for word in lists["words"]:
        try:
            re.compile(word)
        except re.error as error:
            raise PartsError(f"{FILE}: {name}: {word!r} is no pattern ({error})") from None
    return Part(name=name, title=str(table["title"]), **lists)


def read_strings(name: str, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise PartsError(f"{FILE}: {name}.{key} must be a list of strings")
    return tuple(value)


def choose_parts(parts: Mapping[str, Part], names: Iterable[str]) -> list[Part]:
    """The named parts and all that need one of them, in the order of parts.toml.

    Raises:
        PartsError: a name is unknown.
    """
    chosen = set(names)
    if unknown := sorted(chosen - set(parts)):
        raise PartsError(f"{unknown[0]!r} is no part; there are: {', '.join(parts)}")
    while more := {
        part.name for part in parts.values() if chosen & set(part.needs) and part.name not in chosen
    }:
        chosen |= more
    return [part for part in parts.values() if part.name in chosen]


def find_own(part: Part, files: Sequence[str]) -> list[str]:
    """Those of `files` that are the part's own.

    Raises:
        PartsError: a path of the part matches no file.
    """
    found: list[str] = []
    for path in part.paths:
        pattern = re.compile(to_pattern(path))
        matching = [file for file in files if pattern.fullmatch(file)]
        if not matching:
            raise PartsError(f"{FILE}: {part.name} has {path}, and there is no such file")
        found += matching
    return sorted(set(found))


def to_pattern(path: str) -> str:
    """A regular expression for a path; `*` stands for characters of one name."""
    return re.escape(path).replace(r"\*", "[^/]*") + "(/.*)?"


def recognize_marks(parts: Iterable[Part]) -> re.Pattern[str]:
    """What matches a line that says of itself that it goes with one of the parts."""
    names = "|".join(re.escape(part.name) for part in parts)
    return re.compile(rf"\bpart: (?:[\w-]+, )*({names})\b")


def recognize(parts: Sequence[Part], names: Iterable[str]) -> re.Pattern[str]:
    """What matches a line that mentions one of the parts: a word, a verb, a mark or a path.

    `names` are the names of files that only these parts have.
    """
    paths = [path for part in parts for path in part.paths if "*" not in path]
    verbs = either(verb for part in parts for verb in part.verbs)
    patterns = [
        *(word for part in parts for word in part.words),
        recognize_marks(parts).pattern,
        rf"(?<![\w-]){either(paths)}(?![\w-])",
        rf"(?<![\w.-]){either(names)}(?![\w-])",
        *(rf"\bmake {verbs}(?![\w-])", rf'^\s+"{verbs}",$', rf"^{verbs}:"),
    ]
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.MULTILINE)


def either(texts: Iterable[str]) -> str:
    """A pattern for one of the texts; where there are none, it matches nothing."""
    return f"(?:{'|'.join(map(re.escape, sorted(texts))) or '(?!)'})"
