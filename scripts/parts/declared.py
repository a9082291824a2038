"""`parts.toml`: the parts of the project that can be left out."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from scripts.changes import ChangeError

FILE = "parts.toml"


class PartsError(ChangeError):
    """A part cannot be taken out."""


class Part(BaseModel):
    """A part of the project, and how all that belongs to it is found."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern="^[a-z][a-z-]*$")
    title: str
    paths: tuple[str, ...]
    """Files and folders that are its own, relative to the checkout; `*` is any name."""
    needs: tuple[str, ...] = ()
    """The parts without which it cannot be."""
    verbs: tuple[str, ...] = ()
    """Of the Makefile."""
    words: tuple[re.Pattern[str], ...] = ()
    """What one of these matches, in any case, mentions the part."""


PARTS = TypeAdapter(dict[str, Part])


def load_parts(root: Path) -> dict[str, Part]:
    """Return all parts that are still there, by name.

    Raises:
        PartsError: parts.toml is missing or wrong.
    """
    try:
        declared = tomllib.loads((root / FILE).read_text())
        parts = PARTS.validate_python(
            {name: {"name": name, **as_table(name, value)} for name, value in declared.items()}
        )
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PartsError(f"{FILE} cannot be read ({error})") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise PartsError(f"{FILE}: {where}: {first['msg']}") from None
    for part in parts.values():
        for needed in part.needs:
            if needed not in parts:
                raise PartsError(f"{FILE}: {part.name} needs {needed}, which is no part")
    return parts


def as_table(name: str, value: object) -> dict[str, object]:
    """
    Raises:
        PartsError: the value is no table.
    """
    if not isinstance(value, dict):
        raise PartsError(f"{FILE}: {name} is no table; a part is [{name}]")
    return value


def choose_parts(parts: Mapping[str, Part], names: Iterable[str]) -> list[Part]:
    """Return the named parts and all that need one of them, in the order of parts.toml.

    Raises:
        PartsError: a name is unknown.
    """
    chosen = set(names)
    if unknown := sorted(chosen - set(parts)):
        raise PartsError(f"{unknown[0]!r} is no part; there are: {', '.join(parts) or 'none'}")
    while more := {
        part.name for part in parts.values() if chosen & set(part.needs) and part.name not in chosen
    }:
        chosen |= more
    return [part for part in parts.values() if part.name in chosen]


def find_own(part: Part, files: Sequence[str]) -> list[str]:
    """Return those of `files` that are the part's own.

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
    """Return a regular expression for a path; `*` stands for characters of one name."""
    return re.escape(path).replace(r"\*", "[^/]*") + "(/.*)?"


def recognize_marks(parts: Iterable[Part]) -> re.Pattern[str]:
    """Return what matches the comment of a line that goes with one of the parts."""
    return re.compile(rf"# part: (?:[\w-]+, )*{either(part.name for part in parts)}(?![\w-])")


def recognize(parts: Sequence[Part], names: Iterable[str]) -> re.Pattern[str]:
    """Return what matches a mention of one of the parts: a word, a verb, a mark or a path.

    `names` are the names of files that only these parts have.
    """
    paths = [path for part in parts for path in part.paths if "*" not in path]
    # The name of such a folder is a word, too: in prose it is no mention.
    folder = either(path for path in paths if path.isalpha())
    path = either(path for path in paths if not path.isalpha())
    verb = either(verb for part in parts for verb in part.verbs)
    name = either(name for name in names if "." in name)
    patterns = [
        *(f"(?i:{word.pattern})" for part in parts for word in part.words),
        recognize_marks(parts).pattern,
        rf"(?<![\w-]){path}(?![\w-])",
        rf"\b{folder}(?:/|\.\w)",
        rf"[`\"',{{]{folder}[`\"',}}]",
        rf"(?:\bfrom|\bimport|-m) {folder}\b",
        rf"(?<![\w.-]){name}(?![\w-])",
        rf"(?:\bmake|\$\(MAKE\))(?: -[\w-]+| \w+=\S+)* {verb}(?![\w-])",
        rf'^\s+"{verb}",?$',
    ]
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.MULTILINE)


def either(texts: Iterable[str]) -> str:
    """Return a pattern for one of the texts; where there are none, it matches nothing."""
    return f"(?:{'|'.join(map(re.escape, sorted(texts))) or '(?!)'})"
