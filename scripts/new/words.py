"""The words of a new service: its name in every form, and texts of the skeleton with it."""

import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass

from scripts.changes import ChangeError

NAME_FORM = r"[a-z][a-z0-9]{2,15}"
"""A role of PostgreSQL, a module of Python and the first word of a process have this name."""

RESERVED = frozenset(
    {"all", "cluster", "containers", "contracts", "development", "hometown", "infra", "kafka"}
    | {"jaeger", "postgres", "processes", "references", "scripts", "shared", "template", "web"}
)

SKELETON_PLURAL, SKELETON_SINGULAR = "things", "thing"
ARTICLE = re.compile(r"\b([Aa])(?= things?\b)")


class NewServiceError(ChangeError):
    """A service cannot be made."""


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
        if self.singular[0] in "aeiou":
            text = ARTICLE.sub(r"\1n", text)
        for skeleton, word in (
            (SKELETON_PLURAL, self.plural),
            (SKELETON_SINGULAR, self.singular),
        ):
            text = replace_word(text, skeleton, word)
        return text


def replace_word(text: str, skeleton: str, word: str) -> str:
    """In lower case, with a capital and in capitals; `nothing` and `something` are other words."""
    lower = re.compile(rf"(?<![A-Za-z]){skeleton}(?![a-z])")
    capital = re.compile(rf"{skeleton.capitalize()}(?![a-z])")
    upper = re.compile(rf"(?<![A-Z]){skeleton.upper()}(?![A-Z])")
    text = lower.sub(word, text)
    text = capital.sub(word.capitalize(), text)
    return upper.sub(word.upper(), text)


def parse_words(name: str, singular: str | None) -> Words:
    """The words of a service by its name, such as `payments`.

    Raises:
        NewServiceError: the name cannot be one, or its singular must be given.
    """
    if not re.fullmatch(NAME_FORM, name):
        raise NewServiceError(
            f"{name!r} cannot be a name: 3 to 16 letters and digits in lower case, a letter first, "
            "as in name=payments"
        )
    if singular is None:
        singular = derive_singular(name)
    if not re.fullmatch(NAME_FORM, singular) or singular == name:
        raise NewServiceError(
            f"{singular!r} cannot be the singular of {name!r}: it is another word of 3 to 16 "
            "letters and digits in lower case"
        )
    for word in (name, singular):
        if word in RESERVED or keyword.iskeyword(word) or keyword.issoftkeyword(word):
            raise NewServiceError(f"the name {word!r} is reserved: choose another")
    return Words(plural=name, singular=singular)


def derive_singular(plural: str) -> str:
    """Raises NewServiceError for a word that is not of the usual form."""
    for ending, replacement in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch")):
        if plural.endswith(ending):
            return plural.removesuffix(ending) + replacement
    if plural.endswith("s") and not plural.endswith(("ss", "us", "is")):
        return plural.removesuffix("s")
    raise NewServiceError(
        f"the singular of {plural!r} is not clear: give it, as in name=people singular=person"
    )


def split_words(text: str) -> frozenset[str]:
    """All words in a text in lower case, and those that its names consist of."""
    return frozenset(word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", text))


def demand_unused(words: Words, texts: Iterable[str]) -> None:
    """See that the new words mean nothing else in the skeleton.

    Raises:
        NewServiceError: one is a word of it, such as `event`, which would make the two ambiguous.
    """
    used = frozenset(word for text in texts for word in split_words(text))
    for word in (words.plural, words.singular):
        if word in used:
            raise NewServiceError(
                f"{word!r} has another meaning in the code of a service already: choose another"
            )
