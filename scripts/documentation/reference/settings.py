"""The page of settings: each variable with its type, default, bounds, readers and meaning.

Those to change are grouped as in `.env.example`. All else is read from the classes with which
programs read their settings.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard, Union, get_args, get_origin

import annotated_types
from pydantic import FilePath, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from scripts.changes import CHECKOUT
from scripts.documentation.markdown import code, codes, join_parts
from shared.messaging.topics import TopicSettings
from shared.runtime.settings import KafkaSettings, LogSettings, ProcessSettings, Settings

EXAMPLE = CHECKOUT / ".env.example"
DEFINITION = re.compile(r"^class \w+\(.*Settings\b.*\):", re.MULTILINE)
"""The beginning of a class of settings."""

READERS: Mapping[type[BaseSettings], str] = {
    LogSettings: "every process",
    KafkaSettings: "every process",
    ProcessSettings: "every process",
    Settings: "every process with a database",
    TopicSettings: "`python -m shared.messaging.topics`",
}
"""The readers of what a class adds. Of any other class it is the service, or the stack."""
STACK, OF_STACK = "infra", "`make`"

NO_VARIABLES = {"HOMETOWN_PORTS_GIVEN"}
"""Fields that are read from several variables: from one for each port."""


class Setting(NamedTuple):
    """A variable, as the classes have it that declare it."""

    name: str
    type: str = ""
    default: str = ""
    is_required: bool = False
    readers: tuple[str, ...] = ()
    meanings: tuple[str, ...] = ()


class Group(NamedTuple):
    """Variables below one comment of `.env.example`, each with its value there."""

    comment: str
    values: Mapping[str, str]


def write() -> str:
    declared = read_declared()
    groups = list(read_groups(EXAMPLE.read_text()))
    listed = {name for group in groups for name in group.values}
    return join_parts(
        "# Settings: the environment variables",
        "Each process reads its settings once, when it starts, from the environment, or from files"
        " in the folder that `SECRETS_DIR` names. If one is missing or malformed, it ends with a"
        " line that has its name. `None` is a variable that is not set. A container gets the"
        " variables that its Compose file or its manifest passes to it.",
        "## Settings to change",
        *(part for group in groups for part in write_group(group, declared)),
        "## Settings that a stack makes",
        "Mostly addresses, folders and secrets, which `make up`, the Compose files and the"
        " manifests set.",
        write_settings(each for name, each in sorted(declared.items()) if name not in listed),
    )


def write_group(group: Group, declared: Mapping[str, Setting]) -> Iterator[str]:
    """Yield what `.env.example` says. The defaults there include those that are computed."""
    yield group.comment
    yield write_settings(
        declared.get(name, Setting(name))._replace(default=value)
        for name, value in group.values.items()
    )


def write_settings(settings: Iterable[Setting]) -> str:
    """Return a list. What a library, make or Compose reads has neither a type nor a reader here."""
    return "\n".join(f"- {code(each.name)}{write_setting(each)}" for each in settings)


def write_setting(setting: Setting) -> str:
    about = [
        setting.type,
        "required" if setting.is_required else "",
        f"by default {code(setting.default)}" if setting.default else "",
        f"read by {', '.join(setting.readers)}" if setting.readers else "",
    ]
    words = " ".join((f": {'; '.join(filter(None, about))}.", *setting.meanings))
    return "." if words == ": ." else words


def read_groups(example: str) -> Iterator[Group]:
    """Yield the groups of a form such as `.env.example`: comments, each with what is below it.

    A comment after a variable begins another group.
    """
    comment: list[str] = []
    values: dict[str, str] = {}
    for line in [*example.splitlines(), ""]:
        if variable := re.fullmatch(r"#([A-Za-z_]\w*)=(.*)", line):
            values[variable[1]] = variable[2]
            continue
        if values or (comment and not line):
            yield Group(" ".join(comment), values)
            comment, values = [], {}
        if line:
            comment.append(line.removeprefix("# "))


@cache
def read_declared() -> Mapping[str, Setting]:
    """Return the settings of all classes by the names of their variables."""
    declared: dict[str, Setting] = {}
    for folder, settings in find_classes():
        inherited = {name for base in settings.__bases__ for name in get_fields(base)}
        reader = READERS.get(settings, OF_STACK if folder == STACK else folder)
        for field, info in settings.model_fields.items():
            name = get_variable(settings, field, info)
            if field in inherited or name in NO_VARIABLES:
                continue
            found = describe(name, info, reader, read_docstrings(settings).get(field, ""))
            declared[name] = merge(declared.get(name, found), found)
    return declared


def find_classes() -> Iterator[tuple[str, type[BaseSettings]]]:
    """Yield each class of settings, after the folder of its package."""
    for path in sorted(CHECKOUT.glob("*/src/**/*.py")):
        if not DEFINITION.search(path.read_text()):
            continue
        folder, _, *package = path.relative_to(CHECKOUT).with_suffix("").parts
        module = import_module(".".join(package))
        for each in vars(module).values():
            if is_class_of_settings(each) and each.__module__ == module.__name__:
                yield folder, each
        if hasattr(module, "create_settings"):  # a class that depends on the declared databases
            yield folder, module.create_settings()


def is_class_of_settings(found: object) -> TypeGuard[type[BaseSettings]]:
    return inspect.isclass(found) and issubclass(found, BaseSettings)


def get_fields(base: type) -> Mapping[str, FieldInfo]:
    return base.model_fields if is_class_of_settings(base) else {}


def get_variable(settings: type[BaseSettings], field: str, info: FieldInfo) -> str:
    """Return the name of the variable of a field."""
    if isinstance(info.validation_alias, str):
        return info.validation_alias
    return f"{settings.model_config.get('env_prefix', '')}{field}".upper()


def describe(name: str, info: FieldInfo, reader: str, meaning: str) -> Setting:
    return Setting(
        name=name,
        type=describe_type(info.annotation, info.metadata),
        default=describe_default(info.default),
        is_required=info.is_required(),
        readers=(reader,),
        meanings=(meaning,) if meaning else (),
    )


def merge(first: Setting, other: Setting) -> Setting:
    """Return a setting with the readers and the meanings of two classes, each once."""
    return first._replace(
        readers=tuple(dict.fromkeys(first.readers + other.readers)),
        meanings=tuple(dict.fromkeys(first.meanings + other.meanings)),
    )


def describe_default(default: Any) -> str:
    """Return nothing where there is none, or where it is computed."""
    if default is PydanticUndefined or default is None or default in ("", SecretStr("")):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    is_whole = isinstance(default, float) and default.is_integer()
    return str(int(default) if is_whole else default)


NAMES: Mapping[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    SecretStr: "secret",
    FilePath: "file that exists",
}


def describe_type(annotation: Any, metadata: Sequence[Any]) -> str:
    """Return the type of a setting in words, with its bounds."""
    if annotation in NAMES:
        return ", ".join((NAMES[annotation], *describe_bounds(metadata)))
    if get_origin(annotation) in (Union, UnionType):
        choices = [each for each in get_args(annotation) if each is not NoneType]
        return " or ".join(describe_type(each, metadata) for each in choices)
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return describe_type(inner, [*more, *metadata])
    if get_origin(annotation) is Literal:
        words = codes(each for each in get_args(annotation) if each)
        return f"{words}, or empty" if "" in get_args(annotation) else words
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return "path"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return codes(each.value for each in annotation)
    name = getattr(annotation, "__name__", str(annotation))
    return "address" if name.endswith(("Url", "Dsn")) else name


def describe_bounds(metadata: Sequence[Any]) -> Iterator[str]:
    for bound in metadata:
        match bound:
            case annotated_types.Ge(ge=value):
                yield f"at least {value}"
            case annotated_types.Gt(gt=value):
                yield f"above {value}"
            case annotated_types.Le(le=value):
                yield f"at most {value}"
            case annotated_types.Lt(lt=value):
                yield f"below {value}"
            case annotated_types.MinLen(min_length=value):
                yield f"length at least {value}"


def read_docstrings(settings: type) -> Mapping[str, str]:
    """Return the text below each field that a class itself declares, by the name of the field."""
    try:
        source = inspect.getsource(settings)
    except OSError:  # a class that a function has made
        return {}
    [definition] = ast.parse(textwrap.dedent(source)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                found[name] = " ".join(words.split())
    return found
