"""The reaction of an aggregate to an event of another service."""

import ast
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.new import skeletons
from scripts.new.addition import Addition
from scripts.new.aggregates import Aggregate, get_text, list_rules, locate
from scripts.new.entries import add_row, add_to_list
from scripts.new.event_versions import UNREAD, Module, Version
from scripts.new.texts import plan_texts
from scripts.new.things import README, change, declare_event, finish
from scripts.new.words import NewError
from shared.runtime.declarations import Declarations, Process, Topic

WORKER = "worker"
"""The process that reacts to messages, and its module."""

Schema = Mapping[str, Any]
"""A JSON Schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The event to which an aggregate reacts, as its service reads it."""

    type: str
    topic: Topic
    process: Process
    """Which reads it."""
    module: str
    """The view of its topic, such as `order_messages`."""
    constant: str
    """The codec in that module."""
    field: str
    """The one from which the id of the stream follows."""
    version: int
    """The newest one."""


def plan_reaction(
    root: Path, declared: Declarations, aggregate: Aggregate, command: str, event: str, on: str
) -> Addition:
    """Return a command such as `refund` of a payment, to which an event of another service leads.

    Raises:
        NewError: a name is taken, or the code has another form than that of the skeleton.
    """
    cause = find_cause(root, declared, aggregate, on)
    service = aggregate.service
    words = {skeletons.REACTION: command, skeletons.OUTCOME: event}
    texts = plan_texts(root, aggregate, words, skeletons.OF_REACTION, name_cause(aggregate, cause))
    texts |= declare_event(root, aggregate, event)
    view = f"{locate(service, service.package)}/{cause.module}.py"
    for number in range(2, cause.version + 1):
        version = Version(type=cause.type, number=number)
        texts[view] = Module(path=view, text=texts[view]).define_upcast(version, UNREAD)
    path = f"{service.folder}/service.toml"
    texts[path] = declare_reading(texts[path], service.package, cause)
    title = f"{command.capitalize()}{aggregate.name}"
    readme, source = f"{service.folder}/{README}", f"{cause.type}, of `{cause.topic.name}`"
    type_, topic = aggregate.get_type(event), aggregate.topic.name
    texts |= change(root, readme, lambda text: add_row(text, title, source, type_, topic))
    to_change = {
        "commands.py": "the fields of the command",
        "events.py": "what its event says",
        f"{aggregate.singular}.py": "when it leads to no event, and what it changes",
    }
    of_service = {
        f"{cause.module}.py": "the fields of the message that are used",
        f"{WORKER}.py": "what they say to the aggregate, and which one is meant",
    }
    return finish(aggregate, title, texts, to_change, of_service)


def find_cause(root: Path, declared: Declarations, aggregate: Aggregate, on: str) -> Cause:
    """Return the event with the type `on`. Raises NewError: the service cannot react to it."""
    service = aggregate.service
    topics = [each for each in declared.topics.values() if on in each.types]
    if not topics:
        types = ", ".join(type_ for each in declared.topics.values() for type_ in each.types)
        raise NewError(f"no topic has an event {on!r}; there are: {types}")
    topic = topics[0]
    if topic.name in service.topics:
        raise NewError(f"{on} is an event of {service.folder} itself: name one of another service")
    process = service.processes.get(WORKER)
    source = root / locate(service, service.package)
    worker = source / f"{WORKER}.py"
    if process is None or not worker.exists():
        raise NewError(f"{service.folder} has no process {WORKER}, or no {WORKER}.py")
    names = [each.stem for each, _, other in list_rules(root, declared) if other == topic]
    singular = names[0] if names else topic.name.partition(".")[0]
    module = find_view(source, service.package, process, topic)
    if module is None and topic.name in process.reads:
        raise NewError(f"no module in `views` of {process.name} has TOPIC = {topic.name!r}")
    module = module or f"{singular}_messages"
    view = source / f"{module}.py"
    if any(f'"{on}"' in path.read_text() for path in (view, worker) if path.exists()):
        raise NewError(f"{service.folder} reads {on} already: add to its table in {WORKER}.py")
    schemas = read_schemas(root, topic, on)
    return Cause(
        type=on,
        topic=topic,
        process=process,
        module=module,
        constant=name_constant(view, on),
        field=choose_field(on, schemas.values(), (aggregate.id, f"{singular}_id")),
        version=max(schemas),
    )


def find_view(source: Path, package: str, process: Process, topic: Topic) -> str | None:
    """Return the module of a package in which a process reads a topic, if there is one."""
    for name in process.views:
        module = name.removeprefix(f"{package}.")
        path = source / f"{module}.py"
        if path.exists() and get_text(ast.parse(path.read_text()), "TOPIC") == topic.name:
            return module
    return None


def name_constant(view: Path, type_: str) -> str:
    """Return a name for the codec of a type: without its first word, if that is free."""
    long = type_.replace("-", "_").upper()
    short = long.partition("_")[2] or long
    is_taken = view.exists() and re.search(rf"^{short}\b", view.read_text(), re.MULTILINE)
    return long if is_taken else short


def read_schemas(root: Path, topic: Topic, type_: str) -> dict[int, Schema]:
    """Return those of a type by its versions. Raises NewError: there is none."""
    folder = f"contracts/schemas/{topic.name}"
    paths = [*(root / folder).glob(f"{type_}.v*.json")]
    if not paths:
        raise NewError(f"{folder} has no {type_}.v1.json: run `make contracts` first")
    return {int(path.stem.rpartition(".v")[2]): json.loads(path.read_text()) for path in paths}


def choose_field(type_: str, schemas: Collection[Schema], fields: Sequence[str]) -> str:
    """Return the first of `fields` that is an id in each event of a type. Raises NewError."""
    for field in fields:
        if all(demands_id(schema, field) for schema in schemas):
            return field
    raise NewError(f"{type_} has no {' and no '.join(fields)}: nothing says which stream is meant")


def demands_id(schema: Schema, field: str) -> bool:
    is_id: bool = schema["properties"].get(field, {}).get("format") == "uuid"
    return is_id and field in schema.get("required", ())


def name_cause(aggregate: Aggregate, cause: Cause) -> dict[str, str]:
    """Return the names that the skeleton gives to a message, with those of this one."""
    words = cause.type.split("-")
    package, module, field = aggregate.service.package, cause.module, cause.field
    is_own = field == aggregate.id
    stream = "{}" if is_own else f'derive_id({{}}, "{aggregate.singular}")'
    return {
        "from things_svc import order_messages": f"from {package} import {module}",
        "order_messages": module,
        "orders.v1": cause.topic.name,
        "order-cancelled": cause.type,
        "OrderCancelled": "".join(map(str.capitalize, words)),
        "CANCELLED": cause.constant,
        'derive_id(event.order_id, "thing")': stream.format(f"event.{field}"),
        'derive_id(order_id, "thing")': stream.format(field),
        "order_id": field,
    }


def declare_reading(text: str, package: str, cause: Cause) -> str:
    """Return a service.toml whose process reads the topic of the message, by its view."""
    table = ("processes", cause.process.command)
    view = f"{package}.{cause.module}"
    if cause.topic.name not in cause.process.reads:
        text = add_to_list(text, table, "reads", cause.topic.name)
    return text if view in cause.process.views else add_to_list(text, table, "views", view)
