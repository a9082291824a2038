"""Add to what is no Python: types in a service.toml, rows of documents, migrations in a list."""

import re
import tomllib

from scripts.new.words import NewError


def add_type(text: str, topic: str, type_: str) -> str:
    """Add a type to those of a topic in a service.toml. Raises NewError."""
    return add_to_list(text, ("topics", topic), "types", type_)


def add_to_list(text: str, table: tuple[str, str], key: str, entry: str) -> str:
    """Add an entry to a list of a service.toml, or the list with it.

    Raises:
        NewError: the table or the list has another form than in the skeleton.
    """
    before = read_list(text, table, key)
    group, name = table
    head = rf"(?:{re.escape(name)}|\"{re.escape(name)}\")"
    start = rf"(^\[{group}\.{head}\]\n(?:[^[\n].*\n)*?"
    if found := re.search(rf"{start}{key} = \[)([^]]*)\]", text, re.MULTILINE):
        entries = found[2].rstrip().rstrip(",")
        comma = "," if entries.strip() else ""
        blank, end = ("\n    ", ",\n") if "\n" in found[2] else (" " if comma else "", "")
        after = f'{text[: found.end(1)]}{entries}{comma}{blank}"{entry}"{end}]{text[found.end() :]}'
    else:
        added = rf'\1{key} = ["{entry}"]' + "\n"
        after = re.sub(rf"{start})(?=\n|\[|\Z)", added, text, count=1, flags=re.MULTILINE)
    if read_list(after, table, key) == [*before, entry]:
        return after
    raise NewError(f"service.toml: `{key}` of {name} has another form than in the skeleton")


def read_list(text: str, table: tuple[str, str], key: str) -> list[str]:
    """Return a list of a table; none where there is none, or the text is not well-formed."""
    group, name = table
    try:
        return list(tomllib.loads(text)[group][name].get(key, []))
    except (tomllib.TOMLDecodeError, KeyError):
        return []


def add_row(text: str, command: str, source: str, type_: str, topic: str) -> str:
    """Add a row to the table of commands, if there is one; its head can name the topic.

    `source` is what leads to the command: a request, or a message.
    """
    table = re.search(r"^\| command \|(.*)\n(?:\|.*\n)+", text, re.MULTILINE)
    if not table:
        return text
    where = "" if topic in table[1] else f", in `{topic}`"
    row = f"| {command} | {source} | {type_}{where} |\n"
    return f"{text[: table.end()]}{row}{text[table.end() :]}"


def add_to_topic(text: str, topic: str, type_: str) -> str:
    """Add a type to the row of a topic, if there is one."""
    return re.sub(rf"^(\| `{re.escape(topic)}` \|.*\S) \|$", rf"\1, {type_} |", text, flags=re.M)


def add_migration(text: str, name: str, digest: str) -> str:
    """Add a migration after the others of its package, if the list of released ones has any."""
    package = re.escape(name.partition("/")[0])
    listed = rf'^((?:.*\n)*    "{package}/.*\n)'
    return re.sub(listed, rf'\g<1>    "{name}": "{digest}",' + "\n", text, count=1, flags=re.M)
