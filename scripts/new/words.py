"""The words of what is new: a name in every form, and texts of the skeleton with it."""

import builtins
import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from scripts.changes import ChangeError

NAME_FORM = r"[a-z][a-z0-9]{2,15}"
"""A role of PostgreSQL, a module of Python and the first word of a process have this name."""

RESERVED = frozenset(
    {"all", "cluster", "containers", "contracts", "development", "hometown", "infra", "kafka"}
    | {"jaeger", "postgres", "processes", "references", "scripts", "shared", "template", "web"}
)

SKELETON_PLURAL, SKELETON_SINGULAR = "things", "thing"
VOWEL = re.compile("(?!uni|us|eu|one)[aeiou]")
"""How a word begins that follows `an`."""
ARTICLE = re.compile(r"\b([Aa])(?= things?\b)")

WORD_FORM = r"[a-z]{2,20}"
"""A word that is a part of names of classes, functions and event types."""

PARAMETER = "command"
"""Of `decide`, which calls a function with the name of each command."""


class NewError(ChangeError):
    """What is asked for cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """`payments` and `payment`."""

    plural: str
    singular: str

    @property
    def folder(self) -> str:
        return f"{self.plural}-svc"

    @property
    def package(self) -> str:
        return f"{self.plural}_svc"

    def rename(self, text: str) -> str:
        """A text of the skeleton, or a path, with these words instead of `things`, `thing`."""
        if VOWEL.match(self.singular):
            text = ARTICLE.sub(r"\1n", text)
        words = {SKELETON_PLURAL: self.plural, SKELETON_SINGULAR: self.singular}
        return replace_words(text, words)


def replace_words(text: str, words: Mapping[str, str]) -> str:
    """In lower case, with a capital and in capitals; `nothing` and `something` are other words."""
    either = "|".join(words)

    def replace(pattern: str, form: Callable[[str], str], text: str) -> str:
        return re.sub(pattern, lambda found: form(words[found[0].lower()]), text)

    text = replace(rf"(?<![A-Za-z])(?:{either})(?![a-z])", str, text)
    text = replace(rf"(?:{either.title()})(?![a-z])", str.capitalize, text)
    return replace(rf"(?<![A-Z])(?:{either.upper()})(?![A-Z])", str.upper, text)


def parse_words(name: str, singular: str | None) -> Words:
    """The words of a service by its name, such as `payments`.

    Raises:
        NewError: the name cannot be one, or its singular must be given.
    """
    if not re.fullmatch(NAME_FORM, name):
        raise NewError(
            f"{name!r} cannot be a name: 3 to 16 letters and digits in lower case, a letter first, "
            "as in name=payments"
        )
    if singular is None:
        singular = derive_singular(name)
    if not re.fullmatch(NAME_FORM, singular) or singular == name:
        raise NewError(
            f"{singular!r} cannot be the singular of {name!r}: it is another word of 3 to 16 "
            "letters and digits in lower case"
        )
    for word in (name, singular):
        if word in RESERVED or keyword.iskeyword(word) or keyword.issoftkeyword(word):
            raise NewError(f"the name {word!r} is reserved: choose another")
    return Words(plural=name, singular=singular)


def demand_word(word: str, aggregate: str) -> None:
    """See that a word can name a command or an event of an aggregate.

    Raises:
        NewError: it cannot.
    """
    if not re.fullmatch(WORD_FORM, word):
        raise NewError(f"{word!r} cannot be a name: one word of 2 to 20 letters in lower case")
    if word in (aggregate, PARAMETER) or keyword.iskeyword(word) or hasattr(builtins, word):
        raise NewError(f"the name {word!r} has another meaning already: choose another")


def derive_singular(plural: str) -> str:
    """Raises NewError for a word that is not of the usual form."""
    for ending, replacement in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch")):
        if plural.endswith(ending):
            return plural.removesuffix(ending) + replacement
    if plural.endswith("s") and not plural.endswith(("ss", "us", "is")):
        return plural.removesuffix("s")
    raise NewError(
        f"the singular of {plural!r} is not clear: give it, as in name=people singular=person"
    )


def split_words(text: str) -> frozenset[str]:
    """All words in a text in lower case, and those that its names consist of."""
    return frozenset(word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", text))


def demand_unused(words: Words, texts: Iterable[str]) -> None:
    """See that the new words mean nothing else in the skeleton.

    Raises:
        NewError: one is a word of it, such as `event`, which would make the two ambiguous.
    """
    used = frozenset(word for text in texts for word in split_words(text))
    for word in (words.plural, words.singular):
        if word in used:
            raise NewError(
                f"{word!r} has another meaning in the code of a service already: choose another"
            )
