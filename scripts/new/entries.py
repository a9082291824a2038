"""Add to what is no Python: types in a service.toml, rows of documents, migrations in a list."""

import re
import tomllib

from scripts.new.words import NewError


def add_type(text: str, topic: str, type_: str) -> str:
    """Add a type to those of a topic in a service.toml. Raises NewError."""
    listed = rf'(^\[topics\."{re.escape(topic)}"\]\n(?:[^[\n].*\n)*?types = \[)([^]]*)\]'
    if found := re.search(listed, text, re.MULTILINE):
        types = found[2].rstrip().rstrip(",")
        comma = "," if types.strip() else ""
        blank, end = ("\n    ", ",\n") if "\n" in found[2] else (" " if comma else "", "")
        added = f'{types}{comma}{blank}"{type_}"{end}]'
        after = f"{text[: found.end(1)]}{added}{text[found.end() :]}"
        if read_types(after, topic) == [*read_types(text, topic), type_]:
            return after
    raise NewError(f"service.toml: `types` of {topic} has another form than in the skeleton")


def read_types(text: str, topic: str) -> list[str]:
    """Return the types of a topic; none where the text is not well-formed."""
    try:
        return list(tomllib.loads(text)["topics"][topic]["types"])
    except tomllib.TOMLDecodeError:
        return []


def add_row(text: str, command: str, address: str, type_: str, topic: str) -> str:
    """Add a row to the table of commands, if there is one; its head can name the topic."""
    table = re.search(r"^\| command \|(.*)\n(?:\|.*\n)+", text, re.MULTILINE)
    if not table:
        return text
    where = "" if topic in table[1] else f", in `{topic}`"
    row = f"| {command} | `POST {address}` | {type_}{where} |\n"
    return f"{text[: table.end()]}{row}{text[table.end() :]}"


def add_to_topic(text: str, topic: str, type_: str) -> str:
    """Add a type to the row of a topic, if there is one."""
    return re.sub(rf"^(\| `{re.escape(topic)}` \|.*\S) \|$", rf"\1, {type_} |", text, flags=re.M)


def add_migration(text: str, name: str, digest: str) -> str:
    """Add a migration after the others of its package, if the list of released ones has any."""
    package = re.escape(name.partition("/")[0])
    listed = rf'^((?:.*\n)*    "{package}/.*\n)'
    return re.sub(listed, rf'\g<1>    "{name}": "{digest}",' + "\n", text, count=1, flags=re.M)
