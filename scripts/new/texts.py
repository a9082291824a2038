"""The files of an aggregate, with what the skeleton has of one thing."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from scripts.new.aggregates import REPEATED, Aggregate, locate
from scripts.new.grafting import Donor, graft, graft_cases
from scripts.new.skeletons import OF_FIRST_REACTION, OF_OTHER_REACTION, read_skeleton
from scripts.new.words import NewError, Words, demand_word, replace_words
from scripts.parts.removal import cut_file

FOLDER = "things-svc"
PACKAGE = f"{FOLDER}/src/things_svc"
FOLLOWED = f"{PACKAGE}/thing_list.py"
"""A read model; those of an aggregate have names of their own."""
API = f"{PACKAGE}/api.py"
MIGRATIONS = "migrations/"
MESSAGES = f"{PACKAGE}/order_messages.py"
"""What a service reads of another one; there is one such module for each topic."""
WORKER, TABLE = f"{PACKAGE}/worker.py", "THING_COMMANDS"
"""Where an aggregate that reacts to messages has a table of them."""
OF_SERVICE = ("read_models.py", "bootstrap.py", "worker.py", "order_messages.py")
"""Modules that a service has once, however many aggregates it has."""

KEY = "key_of_topic"
"""Stands for the key of a topic in a text of the skeleton."""

HOLE = "\0"
"""Around the number of a name, while others are replaced."""

Rename = Callable[[str], str]


def plan_texts(
    root: Path,
    aggregate: Aggregate,
    words: Mapping[str, str],
    pattern: re.Pattern[str],
    names: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the files with what of the skeleton matches; `words` are its words with the new ones.

    `names` are others of its names, and what they are here.

    Raises:
        NewError: a name is taken, or the code has another form than that of the skeleton.
    """
    for word in words.values():
        demand_word(word, aggregate.singular)
    rename = make_rename(aggregate, words, names)
    grafted = (f"{FOLDER}/{REPEATED}", PACKAGE) if aggregate.beginning else PACKAGE
    texts: dict[str, str] = {}
    for path, text in read_donors(aggregate).items():
        new_path = move(root, path, aggregate, rename)
        if pattern.search(path):
            if (root / new_path).exists():
                raise NewError(f"{new_path} exists: choose another name")
            texts[new_path] = rename(text)
        elif path == MESSAGES and pattern.search(text) and not (root / new_path).exists():
            texts[new_path] = rename(cut_file(path, text, (), OF_OTHER_REACTION))
        elif path.startswith(grafted) and pattern.search(text):
            of_it = pattern
            if path == WORKER and rename(TABLE) not in (root / new_path).read_text():
                text, of_it = cut_file(path, text, (), OF_OTHER_REACTION), OF_FIRST_REACTION
            donor = Donor.parse(text, rename(text), of_it)
            if path == FOLLOWED:
                texts |= graft_followers(root, aggregate, donor)
            else:
                texts[new_path] = graft_file(root, new_path, donor)
    return texts


def read_donors(aggregate: Aggregate) -> dict[str, str]:
    """Return the texts of the skeleton with what an aggregate needs in addition."""
    texts = read_skeleton()
    codes = [code for codes in aggregate.refusals.values() for code in codes if code.isidentifier()]
    texts[API] += f"from things_svc.thing import {', '.join([*codes, 'THING'])}\n"
    if aggregate.topic.key != aggregate.id:
        texts = {path: with_key(text) for path, text in texts.items()}
    return texts


def with_key(text: str) -> str:
    """Give what can be added the field that is the key of a topic, next to the id."""
    head = r"(class Thing(?:Approved|Settled):\n)( +)thing_id: UUID\n"
    text = re.sub(head, rf"\1\2thing_id: UUID\n\2{KEY}: UUID\n", text)
    return re.sub(r"\(thing_id=(\w+)\.thing_id\)", rf"(thing_id=\1.thing_id, {KEY}=\1.{KEY})", text)


def make_rename(
    aggregate: Aggregate, words: Mapping[str, str], others: Mapping[str, str]
) -> Rename:
    """Return what gives a text of the skeleton the names of an aggregate, and of what is new."""
    first_type, first_class = aggregate.types[0]
    refusals = [f"{kind}=[{', '.join(codes)}]" for kind, codes in aggregate.refusals.items()]
    names = {
        "things.v1": aggregate.topic.name,
        "things_svc.bootstrap": f"{aggregate.service.package}.bootstrap",
        KEY: aggregate.topic.key,
        "things-svc": aggregate.service.folder,
        "things_svc": aggregate.package,
        "thing-added": first_type,
        "ThingAdded": first_class,
        "Added": aggregate.state,
        "require_added": aggregate.guard,
        "begin_thing": aggregate.beginning,
        "unknown-thing": aggregate.unknown,
        "missing=[UNKNOWN_THING]": ", ".join(refusals),
        "missing=(UNKNOWN_THING,)": f"missing=[{aggregate.refusals['missing'][0]}]",
        "NotFound(UNKNOWN_THING": f"NotFound({aggregate.refusals['missing'][0]}",
        **others,
    }
    listed = sorted(names, key=len, reverse=True)
    whole = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, listed))})(?![\w-])")
    of_aggregate = Words(plural=aggregate.plural, singular=aggregate.singular)

    def rename(text: str) -> str:
        text = whole.sub(lambda found: f"{HOLE}{listed.index(found[0])}{HOLE}", text)
        text = replace_words(of_aggregate.rename(text), words)
        filled = rf"{HOLE}(\d+){HOLE}"
        return re.sub(filled, lambda found: names[listed[int(found[1])]], text)

    return rename


def move(root: Path, path: str, aggregate: Aggregate, rename: Rename) -> str:
    """Return where the file of the skeleton is for an aggregate."""
    if not path.startswith(f"{PACKAGE}/"):
        return f"{aggregate.service.folder}/{rename(path.removeprefix(f'{FOLDER}/'))}"
    file = path.removeprefix(f"{PACKAGE}/")
    of_service = locate(aggregate.service, aggregate.service.package)
    if file.startswith(MIGRATIONS):
        number = count_migrations(root / of_service / MIGRATIONS) + 1
        return f"{of_service}/{MIGRATIONS}{number:04}_{rename(file.partition('_')[2])}"
    return f"{of_service if file in OF_SERVICE else aggregate.source}/{rename(file)}"


def count_migrations(folder: Path) -> int:
    """Return the number of the last one."""
    return max((int(path.name[:4]) for path in folder.glob("[0-9]*.sql")), default=0)


def graft_file(root: Path, path: str, donor: Donor) -> str:
    """Raises NewError, with the path."""
    try:
        return graft((root / path).read_text(), donor)
    except NewError as error:
        raise NewError(f"{path}: {error}") from None


def graft_followers(root: Path, aggregate: Aggregate, donor: Donor) -> dict[str, str]:
    """Return the modules with a `match` over all events of the aggregate, with one more case."""
    classes = [name for _, name in aggregate.types]
    rules = f"{aggregate.singular}.py"
    changed = {}
    for path in sorted((root / aggregate.source).glob("*.py")):
        before = path.read_text()
        if path.name != rules and (after := graft_cases(before, donor, classes)) != before:
            changed[str(path.relative_to(root))] = after
    return changed
