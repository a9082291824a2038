"""The settings: each variable with its type, default, bounds and the processes that read it.

The names and their groups are those of `.env.example`; everything else is read from the classes
that the processes read their settings with.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import annotated_types
from pydantic import FilePath, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from analytics_faust.settings import FaustSettings
from analytics_spark.settings import ApiSettings, ExportSettings, JobSettings, ReconcileSettings
from console_svc.settings import ConsoleSettings
from local_stack.settings import CHECKOUT
from local_stack.settings import Settings as StackSettings
from observer_svc.settings import CanarySettings, create_settings
from scripts.documentation.reference.tables import code, codes, sections, table
from shared.messaging.topics import TopicSettings
from shared.runtime.declarations import load_declarations
from shared.runtime.settings import LogSettings
from users_svc.api_settings import UsersApiSettings

EXAMPLE = CHECKOUT / ".env.example"

READ_WITH: Mapping[str, type[BaseSettings]] = {
    "users-api": UsersApiSettings,
    "analytics-api": ApiSettings,
    "analytics-job": JobSettings,
    "analytics-reconciler": ReconcileSettings,
    "analytics-faust": FaustSettings,
    "observer": create_settings(),
    "canary": CanarySettings,
    "console": ConsoleSettings,
}
"""The class of each process, but of those of services with an event store: SERVICE names theirs."""

EVERY_PROCESS = "every process"
WITH_DATABASE = "every process with a database"

OTHERS: Mapping[str, type[BaseSettings]] = {
    EVERY_PROCESS: LogSettings,
    "the command that creates topics": TopicSettings,
    "`make export`": ExportSettings,
    "the verbs of make": StackSettings,
}

NO_VARIABLES = {"HOMETOWN_PORTS_GIVEN"}
"""Fields that are made of several variables: here of all whose names begin with HOMETOWN_PORT_."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A variable as `.env.example` has it, or as a class does, or both."""

    name: str
    type: str
    default: str
    readers: str
    meaning: str

    @property
    def row(self) -> tuple[str, ...]:
        return code(self.name), self.type, code(self.default), self.readers, self.meaning


class Group(NamedTuple):
    """The variables below one comment of `.env.example`, each with the value there."""

    comment: str
    values: Mapping[str, str]


HEADER = ("variable", "type", "default", "read by", "meaning")


def write() -> str:
    declared = read_declared()
    groups = read_groups()
    listed = {name for group in groups for name in group.values}
    return sections(
        "# Settings",
        "A setting is an environment variable. Copy `.env.example` to `.env` and change it there:"
        " `make` passes it to every process. A process reads its settings once, at its start; a"
        " missing or malformed value stops it with one line that has the name. A secret can also be"
        " a file, in the folder that `SECRETS_DIR` names.",
        "## Settings to change",
        *(
            sections(
                group.comment,
                table(
                    HEADER,
                    (
                        declared.get(name, describe_undeclared(name, value)).row
                        for name, value in group.values.items()
                    ),
                ),
            )
            for group in groups
        ),
        "## Set by the stack",
        "Addresses, folders and secrets: `make up`, the Compose files and the manifests choose them"
        " and pass them to each process.",
        table(HEADER, (each.row for name, each in sorted(declared.items()) if name not in listed)),
    )


def read_groups() -> Sequence[Group]:
    """A group begins with a comment; lines of code are those without a space behind the mark."""
    groups: list[Group] = []
    comment: list[str] = []
    values: dict[str, str] = {}
    for line in [*EXAMPLE.read_text().splitlines(), "# "]:
        if variable := re.fullmatch(r"#([A-Za-z_]\w*)=(.*)", line):
            values[variable[1]] = variable[2]
        elif line.startswith("# "):
            if values:
                groups.append(Group(" ".join(comment), values))
                comment, values = [], {}
            comment.append(line.removeprefix("# "))
        elif not values:
            comment = []
    return groups


def describe_undeclared(name: str, value: str) -> Setting:
    """A variable that a library, make or a container reads, and no class of settings."""
    return Setting(name=name, type="text", default=value, readers="", meaning="")


@cache
def read_classes() -> Mapping[str, type[BaseSettings]]:
    """The class of each process, by its name."""
    found = dict(READ_WITH)
    for service in load_declarations().services:
        if service.has_event_store:
            of_service = import_module(f"{service.package}.__main__").SERVICE.settings
            for process in service.processes.values():
                found.setdefault(process.name, of_service)
    return found


@cache
def read_declared() -> Mapping[str, Setting]:
    """The settings of all classes, by the name of the variable."""
    processes = read_classes()
    readers: dict[str, list[str]] = {}
    meanings: dict[str, dict[str, None]] = {}
    fields: dict[str, FieldInfo] = {}
    for reader, settings in {**processes, **OTHERS}.items():
        for field, info in settings.model_fields.items():
            name = get_variable(settings, field, info)
            if name in NO_VARIABLES:
                continue
            readers.setdefault(name, []).append(reader)
            meanings.setdefault(name, {})[read_docstring(settings, field)] = None
            fields.setdefault(name, info)
    databases = {name for name, each in processes.items() if "database_url" in each.model_fields}
    return {
        name: Setting(
            name=name,
            type=describe_type(info.annotation, info.metadata),
            default=describe_default(info),
            readers=summarize(readers[name], processes.keys(), databases),
            meaning=" ".join(meanings[name]).strip(),
        )
        for name, info in fields.items()
    }


def get_variable(settings: type[BaseSettings], field: str, info: FieldInfo) -> str:
    """The name of the environment variable of a field."""
    if isinstance(info.validation_alias, str):
        return info.validation_alias
    return f"{settings.model_config.get('env_prefix', '')}{field}".upper()


def summarize(readers: Sequence[str], processes: Set[str], databases: Set[str]) -> str:
    """The readers of a setting; short where all processes are among them."""
    for words, all_of_them in ((EVERY_PROCESS, processes), (WITH_DATABASE, databases)):
        if all_of_them <= set(readers):
            return words
    return ", ".join(readers)


def describe_default(info: FieldInfo) -> str:
    """Empty where there is none, or where it is computed."""
    default = info.default
    if default is PydanticUndefined or default is None or default in ("", SecretStr("")):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


NAMES: Mapping[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    dict: "JSON",
    SecretStr: "secret",
}


def describe_type(annotation: Any, metadata: Sequence[Any]) -> str:
    """The type of a setting in words, with its bounds."""
    if get_origin(annotation) in (Union, UnionType):
        [inner] = [each for each in get_args(annotation) if each is not NoneType]
        return describe_type(inner, metadata)
    if annotation == FilePath:
        return "file that exists"
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return describe_type(inner, [*more, *metadata])
    if get_origin(annotation) is Literal:
        words = "one of " + codes(each for each in get_args(annotation) if each)
        return f"{words}, or empty" if "" in get_args(annotation) else words
    bounds = [words for each in metadata for words in describe_bound(each)]
    return ", ".join((describe_name(annotation), *bounds))


def describe_name(annotation: Any) -> str:
    if annotation in NAMES:
        return NAMES[annotation]
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return "path"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "one of " + codes(each.value for each in annotation)
    name = str(annotation)
    return "address" if "Url" in name or "Dsn" in name else "text"


def describe_bound(bound: Any) -> Iterator[str]:
    match bound:
        case annotated_types.Ge(ge=value):
            yield f"at least {value}"
        case annotated_types.Gt(gt=value):
            yield f"above {value}"
        case annotated_types.Le(le=value):
            yield f"at most {value}"
        case annotated_types.Lt(lt=value):
            yield f"below {value}"


@cache
def read_docstrings(settings: type) -> Mapping[str, str]:
    """The strings below the fields of one class, without those of its bases."""
    try:
        source = inspect.getsource(settings)
    except (OSError, TypeError):
        return {}
    [definition] = ast.parse(textwrap.dedent(source)).body
    if not isinstance(definition, ast.ClassDef):
        return {}
    found = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                found[name] = " ".join(words.split())
    return found


def read_docstring(settings: type, field: str) -> str:
    """What the class that declares a field says about it."""
    for each in settings.__mro__:
        if field in (described := read_docstrings(each)):
            return described[field]
    return ""
