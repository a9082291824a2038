"""The next version of an event: an upcast, in each codec that reads it."""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import libcst as cst

from scripts.changes import PYTHON, Step, check_types
from scripts.new.addition import Addition
from scripts.new.aggregates import get_text, locate
from scripts.new.grafting import (
    Statement,
    add_entry,
    find_definition,
    get_bound,
    insert_imports,
    list_imports,
    list_known,
    to_code,
)
from scripts.new.things import NEXT_STEPS, list_steps
from scripts.new.words import NewError
from shared.runtime.declarations import Declarations, Service, Topic

RELEASED = "contracts/released.json"
CHECK_READERS: Step = ("comparing it with its readers", [PYTHON, "-m", "contracts", "check"])
"""It finds those that get no upcast here, such as analytics."""

UNREAD = ": none that is read here has changed"
DEFINITION = '''\
def {name}(fields: dict[str, Any]) -> dict[str, Any]:
    """Make the fields of version {before} those of version {number}{remark}."""
    return fields
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of an event, beyond the first."""

    type: str
    number: int

    @property
    def upcast(self) -> str:
        """The name of the function that makes the version before it this one."""
        return f"to_{re.sub(r'[^a-z0-9]', '_', self.type)}_{self.number}"

    def define_upcast(self, remark: str) -> Sequence[Statement]:
        """Return that function, which leaves all fields as they are."""
        code = DEFINITION.format(
            name=self.upcast, before=self.number - 1, number=self.number, remark=remark
        )
        return parse_statements(code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a codec has of an event."""

    class_: str
    upcasts: Sequence[str]
    """The functions, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module with codecs, by its path from the checkout on."""

    path: str
    text: str

    @classmethod
    def read(cls, root: Path, service: Service, name: str) -> Self:
        """Raises NewError: there is no such module."""
        path = f"{locate(service, name)}.py"
        if not (root / path).is_file():
            raise NewError(f"{path}, which is in {service.folder}/service.toml, is missing")
        return cls(path=path, text=(root / path).read_text())

    def list_imported(self, module: str) -> set[str]:
        """Return the names that are imported from another module."""
        return {
            get_bound(name)
            for statement in cst.parse_module(self.text).body
            for line, name in list_imports(statement)
            if isinstance(line, cst.ImportFrom) and line.module and to_code(line.module) == module
        }

    def read_codecs(self, type_: str) -> list[Reading]:
        """Return what each codec that reads an event has of it. Raises NewError."""
        return self._visit(type_)[1] if type_ in self.text else []

    def define_upcast(self, version: Version, remark: str = "") -> str:
        """Return the text with an upcast to a version: after the class, and after older ones.

        Raises:
            NewError: a codec does not read the version before, or has another form.
        """
        module, readings = self._enter(version)
        of_codec = next(n for n, each in enumerate(module.body) if version.upcast in to_code(each))
        names = [name for each in readings for name in (each.class_, *each.upcasts)]
        places = [find_definition(module.body, name) for name in names]
        place = max((each + 1 for each in places if each is not None), default=of_codec)
        added = version.define_upcast(remark)
        module = module.with_changes(body=[*module.body[:place], *added, *module.body[place:]])
        if "Any" not in list_known(module.body):
            module = insert_imports(module, parse_statements("from typing import Any"))
        return module.code

    def import_upcast(self, version: Version, source: str) -> str:
        """Return the text with the upcast of another module. Raises NewError."""
        module, _ = self._enter(version)
        imported = parse_statements(f"from {source} import {version.upcast}")
        return insert_imports(module, imported).code

    def refuse(self, reason: str) -> NewError:
        return NewError(f"{self.path}: {reason}")

    def _enter(self, version: Version) -> tuple[cst.Module, list[Reading]]:
        """Return the module whose codecs have an upcast that it does not have yet."""
        module, readings = self._visit(version.type, version.upcast)
        if version.upcast in list_known(module.body):
            raise self.refuse(f"{version.upcast} is there already")
        if any(len(each.upcasts) != version.number - 2 for each in readings):
            raise self.refuse(f"a codec does not read version {version.number - 1}")
        return module, readings

    def _visit(self, type_: str, upcast: str | None = None) -> tuple[cst.Module, list[Reading]]:
        codecs = Codecs(ast.parse(self.text), type_, upcast)
        try:
            return cst.parse_module(self.text).visit(codecs), codecs.found
        except NewError as error:
            raise self.refuse(str(error)) from None


class Codecs(cst.CSTTransformer):
    """Finds the codecs that read an event; each gets an upcast after the others, if there is one.

    Raises:
        NewError: a codec has another form than those of the services here.
    """

    def __init__(self, tree: ast.Module, type_: str, upcast: str | None) -> None:
        super().__init__()
        self._tree = tree
        self._type = type_
        self._upcast = upcast
        self.found: list[Reading] = []

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        called = updated_node.func
        if to_code(called.value if isinstance(called, cst.Subscript) else called) != "Codec":
            return updated_node
        match updated_node.args:
            case [cst.Arg(value=cst.Dict() as types)]:
                upcasts = cst.Dict([])
            case [cst.Arg(value=cst.Dict() as types), cst.Arg(value=cst.Dict() as upcasts)]:
                pass
            case _:
                raise NewError("a codec has arguments that are no dicts, or more than two")
        if (entry := self._find_entry(types)) is None:
            return updated_node
        listed = self._find_entry(upcasts)
        names = listed.value if listed else cst.List([])
        if not isinstance(names, cst.List):
            raise NewError(f"the upcasts of {self._type} are no list")
        known = [to_code(each.value) for each in names.elements]
        self.found.append(Reading(class_=to_code(entry.value), upcasts=known))
        if self._upcast is None:
            return updated_node
        key = to_code((listed or entry).key)
        upcasts = add_entry(upcasts, (key,), cst.Element(cst.Name(self._upcast)))
        first = updated_node.args[0].with_changes(comma=cst.Comma())
        return updated_node.with_changes(args=[first, cst.Arg(upcasts)])

    def _find_entry(self, entries: cst.Dict) -> cst.DictElement | None:
        """Return the entry whose key is the type of the event."""
        elements = [each for each in entries.elements if isinstance(each, cst.DictElement)]
        types = [get_text(self._tree, to_code(each.key)) for each in elements]
        return elements[types.index(self._type)] if self._type in types else None


def plan_event_version(root: Path, declared: Declarations, type_: str) -> Addition:
    """Return the next version of an event such as `order-rejected`, with the fields of the last.

    Raises:
        NewError: it cannot have one, or the code has another form than that of the services here.
    """
    service, topic, events = find_event(root, declared, type_)
    package = topic.contract.rpartition(".")[0]
    contract = Module.read(root, service, topic.contract)
    [reading, *_] = events.read_codecs(type_)
    version = Version(type=type_, number=len(reading.upcasts) + 2)
    texts = {events.path: events.define_upcast(version)}
    to_change = {events.path: f"the fields of the event, and {version.upcast}"}
    samples = [f"{service.folder}/tests/unit/samples"]
    folders: set[str] = set()
    if is_public(contract, package, topic, type_):
        demand_released(root, topic, version)
        texts[contract.path] = contract.import_upcast(version, f"{package}.events")
        samples.append(f"contracts/samples/{topic.name}")
        for folder, view in list_views(root, declared, type_):
            texts[view.path] = view.define_upcast(version, UNREAD)
            to_change[view.path] = f"{version.upcast}, where it reads what changes"
            folders.add(folder)
    made = "delete it, then `make contracts`"
    to_change |= {f"{path}/{type_}.v{version.number}.json": made for path in samples}
    return Addition(
        title=f"Version {version.number} of {type_}",
        texts=texts,
        steps=[
            *list_steps(service.folder, texts),
            *(check_types(folder) for folder in sorted(folders - {service.folder})),
            CHECK_READERS,
        ],
        next_steps=NEXT_STEPS.format(
            files="".join(f"  {path}   {what}\n" for path, what in to_change.items())
        ),
    )


def find_event(root: Path, declared: Declarations, type_: str) -> tuple[Service, Topic, Module]:
    """Return the service that records an event, the topic of its aggregate, and `events`.

    Raises:
        NewError: there is none, or there are several.
    """
    found = []
    for service in declared.services:
        for topic in service.topics.values():
            events = Module.read(root, service, f"{topic.contract.rpartition('.')[0]}.events")
            if events.read_codecs(type_):
                found.append((service, topic, events))
    if not found:
        types = [each for topic in declared.topics.values() for each in topic.types]
        raise NewError(f"{type_!r} is no event; there are: {', '.join(types)}")
    if len(found) > 1:
        paths = " and ".join(events.path for _, _, events in found)
        raise NewError(f"{type_!r} is in {paths}: their readers cannot be distinguished")
    return found[0]


def is_public(contract: Module, package: str, topic: Topic, type_: str) -> bool:
    """Whether others read an event as it is stored; else the contract has another class, or none.

    Raises:
        NewError: that class is neither from the module `events` nor defined there.
    """
    readings = contract.read_codecs(type_)
    if not readings and type_ in topic.types:
        raise contract.refuse(f"no codec has {type_!r}, which is in service.toml")
    for reading in readings:
        name = reading.class_
        if name.startswith("events.") or name in contract.list_imported(f"{package}.events"):
            return True
        if find_definition(cst.parse_module(contract.text).body, name) is None:
            raise contract.refuse(f"{name} is neither from {package}.events nor defined there")
    return False


def list_views(root: Path, declared: Declarations, type_: str) -> Iterator[tuple[str, Module]]:
    """Yield the modules in which other services read an event, with the folder of each service."""
    for service in declared.services:
        names = {name for process in service.processes.values() for name in process.views}
        for name in sorted(names):
            module = Module.read(root, service, name)
            if module.read_codecs(type_):
                yield service.folder, module


def demand_released(root: Path, topic: Topic, version: Version) -> None:
    """Raises NewError: the version before is no promise, so that it can still change."""
    path = root / RELEASED
    released = json.loads(path.read_text()) if path.exists() else {}
    before = str(version.number - 1)
    if before not in released.get(topic.name, {"types": {}})["types"].get(version.type, {}):
        raise NewError(
            f"version {before} of {version.type} is not released, so it can still change;"
            " if others read it already: `make contracts-release`, then again"
        )


def parse_statements(code: str) -> Sequence[Statement]:
    return [each for each in cst.parse_module(code).body if isinstance(each, Statement)]
