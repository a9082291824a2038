"""What can be added to an aggregate, from the code to the documents."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from scripts.changes import PYTHON, Step, check_types, format_code, renew_generated
from scripts.new import skeletons
from scripts.new.addition import Addition
from scripts.new.aggregates import Aggregate, locate
from scripts.new.entries import add_migration, add_row, add_to_topic, add_type
from scripts.new.texts import MIGRATIONS, plan_texts
from scripts.new.words import NewError

README = "README.md"
TOPICS = "docs/architecture.md"
"""It has a table of the public events."""
RELEASED = "verification/tests/unit/test_migrations.py"
"""It has a list of all migrations, with half of the SHA-256 of each."""
DIGEST_CHARACTERS = 32

NEXT_STEPS = """\
  make check    format, lint, types, imports, contracts and unit tests
To change:
{files}docs/new-service.md has each step up to an event of your own in Jaeger.
"""


def plan_command(root: Path, aggregate: Aggregate, command: str, event: str) -> Addition:
    """Return a command such as `suspend` of a user, with its route and its event `suspended`.

    Raises:
        NewError: a name is taken, or the code has another form than that of the skeleton.
    """
    address = f"{aggregate.address}/{command}"
    api = f"{aggregate.source}/api.py"
    if f'"{address}"' in (root / api).read_text():
        raise NewError(f"{api}: there is {address} already: choose another name")
    words = {skeletons.COMMAND: command, skeletons.EVENT: event}
    texts = plan_texts(root, aggregate, words, skeletons.OF_COMMAND)
    texts |= declare_event(root, aggregate, event)
    title = f"{command.capitalize()}{aggregate.name}"
    type_, topic = aggregate.get_type(event), aggregate.topic.name
    readme = f"{aggregate.service.folder}/{README}"
    texts |= change(
        root, readme, lambda text: add_row(text, title, f"`POST {address}`", type_, topic)
    )
    to_change = {
        "commands.py": "the fields of the command",
        "events.py": "what its event says",
        f"{aggregate.singular}.py": "when it is refused, and what it changes",
        "api.py": "its route, which limited callers cannot use yet",
    }
    return finish(aggregate, title, texts, to_change)


def plan_event(root: Path, aggregate: Aggregate, event: str) -> Addition:
    """Return an event such as `suspended` of a user, which no command leads to yet.

    Raises:
        NewError: a name is taken, or the code has another form than that of the skeleton.
    """
    texts = plan_texts(root, aggregate, {skeletons.EVENT: event}, skeletons.OF_EVENT)
    texts |= declare_event(root, aggregate, event)
    to_change = {
        "events.py": "what it says",
        f"{aggregate.singular}.py": "which command leads to it, and what it changes",
    }
    return finish(aggregate, f"{aggregate.name}{event.capitalize()}", texts, to_change)


def plan_read_model(root: Path, aggregate: Aggregate, name: str) -> Addition:
    """Return a read model such as `activity` of a user, with its table and its route.

    Raises:
        NewError: a name is taken, or the code has another form than that of the skeleton.
    """
    texts = plan_texts(root, aggregate, {skeletons.READ_MODEL: name}, skeletons.OF_READ_MODEL)
    [path] = [path for path in texts if MIGRATIONS in path]
    migration = f"{aggregate.service.package}/{path.rpartition('/')[2]}"
    digest = hashlib.sha256(texts[path].encode()).hexdigest()[:DIGEST_CHARACTERS]
    texts |= change(root, RELEASED, lambda text: add_migration(text, migration, digest))
    table = f"{aggregate.singular}_{name}"
    to_change = {
        f"{table}.py": "which events it follows, and what is in a row",
        "schemas.py": "the response",
        "api.py": "its route, which limited callers cannot use yet",
    }
    return finish(aggregate, table, texts, to_change)


def declare_event(root: Path, aggregate: Aggregate, event: str) -> dict[str, str]:
    """Return what has a list of the events of a topic, with one more."""
    declared, topic = f"{aggregate.service.folder}/service.toml", aggregate.topic.name
    type_ = aggregate.get_type(event)
    if type_ in [*aggregate.topic.types, *(name for name, _ in aggregate.types)]:
        raise NewError(f"{topic} has {type_} already: choose another name")
    texts = {declared: add_type((root / declared).read_text(), topic, type_)}
    return texts | change(root, TOPICS, lambda text: add_to_topic(text, topic, type_))


def change(root: Path, path: str, edit: Callable[[str], str]) -> dict[str, str]:
    """Return the file with its new text; nothing if it is not there, or does not change."""
    before = (root / path).read_text() if (root / path).exists() else ""
    return {path: after} if (after := edit(before)) != before else {}


def finish(
    aggregate: Aggregate,
    title: str,
    texts: Mapping[str, str],
    to_change: Mapping[str, str],
    of_service: Mapping[str, str] = MappingProxyType({}),
) -> Addition:
    """`to_change` are modules of the aggregate, `of_service` others, and what to change there."""
    service = locate(aggregate.service, aggregate.service.package)
    listed = [(aggregate.source, each) for each in to_change.items()]
    listed += [(service, each) for each in of_service.items()]
    lines = [f"  {folder}/{file}   {what}\n" for folder, (file, what) in listed]
    return Addition(
        title=title,
        texts=texts,
        steps=list_steps(aggregate.service.folder, texts),
        next_steps=NEXT_STEPS.format(files="".join(lines)),
    )


def list_steps(folder: str, paths: Iterable[str]) -> list[Step]:
    """Return what follows from changes of files of the service in a folder."""
    python = [path for path in paths if path.endswith(".py")]
    return [
        *format_code(*python),
        ("linting", [PYTHON, "-m", "ruff", "check", "-q", "--output-format=concise", *python]),
        check_types(folder),
        *renew_generated("writing the contract"),
    ]
