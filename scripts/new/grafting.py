"""Graft what a donor module has of one thing onto another module of the same form.

A donor is a module of the skeleton. Of it, definitions whose name is the thing's are copied. Where
another definition only mentions the thing, the member of a union, the entry of a dict or a tuple
or the case of a `match` is added to the definition of the same name. `renamed` is the donor
with the names of the other module: it has the same shape, so what is found in the donor is taken
from there.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import libcst as cst

from scripts.new.words import NewError

LAST_COMMENT = re.compile(r"#.*\n\s*[)\]}]")
"""It would be that of what is added."""

Display = TypeVar("Display", cst.Dict, cst.List, cst.Tuple)
Entry = cst.BaseElement | cst.BaseDictElement
Keys = tuple[str, ...]
"""The code of each."""
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(slots=True)
class Parts:
    """What a definition has of a thing; cases with the subject of their `match`."""

    cases: list[tuple[str, cst.MatchCase]] = field(default_factory=list)
    members: list[cst.Name] = field(default_factory=list)
    entries: list[tuple[Keys, Entry]] = field(default_factory=list)
    """With the keys of the dicts that one is in, from the outermost on."""

    @property
    def nodes(self) -> list[cst.CSTNode]:
        cases, entries = (case for _, case in self.cases), (entry for _, entry in self.entries)
        return [*cases, *self.members, *entries]


@dataclass(frozen=True, slots=True)
class Donor:
    """The statements of a donor, and those in their place in the renamed donor."""

    pairs: Sequence[tuple[Statement, Statement]]
    pattern: re.Pattern[str]

    @classmethod
    def parse(cls, donor: str, renamed: str, pattern: re.Pattern[str]) -> "Donor":
        one, other = cst.parse_module(donor).body, cst.parse_module(renamed).body
        return cls(list(zip(one, other, strict=True)), pattern)

    def find_parts(self, number: int) -> Parts:
        """Return what the statement with this number has of the thing."""
        parts = Parts()
        self._collect(*self.pairs[number], "", parts)
        return parts

    def _collect(
        self, donor: cst.CSTNode, renamed: cst.CSTNode, subject: str, parts: Parts
    ) -> None:
        match donor, renamed:
            case cst.Match(), cst.Match():
                subject = to_code(renamed.subject)
            case cst.MatchCase(), cst.MatchCase() if self.mentions(donor.pattern):
                parts.cases.append((subject, renamed))
                return
            case cst.Dict() | cst.Tuple(), cst.Dict() | cst.Tuple():
                self._collect_entries(donor, renamed, (), parts)
                return
            case cst.BinaryOperation(), cst.BinaryOperation() if self.mentions(donor.right):
                assert isinstance(renamed.right, cst.Name)
                parts.members.append(renamed.right)
                return
        for one, other in zip(donor.children, renamed.children, strict=True):
            self._collect(one, other, subject, parts)

    def _collect_entries(
        self,
        donor: cst.Dict | cst.Tuple,
        renamed: cst.Dict | cst.Tuple,
        keys: Keys,
        parts: Parts,
    ) -> None:
        """An entry whose key mentions the thing is added as a whole, another dict gets a part."""
        old: Sequence[Entry] = donor.elements
        new: Sequence[Entry] = renamed.elements
        for one, other in zip(old, new, strict=True):
            match one, other:
                case (
                    cst.DictElement(key=key, value=cst.Dict() as inner),
                    cst.DictElement(key=new_key, value=cst.Dict() as new_inner),
                ) if not self.mentions(key):
                    within = (*keys, to_code(new_key))
                    self._collect_entries(inner, new_inner, within, parts)
                case _ if self.mentions(one):
                    parts.entries.append((keys, other))

    def mentions(self, node: cst.CSTNode) -> bool:
        return bool(self.pattern.search(to_code(node)))


def graft(target: str, donor: Donor) -> str:
    """Return the text of the module `target` with what the donor has of the thing.

    Its imports are neither in order nor merged.

    Raises:
        NewError: a definition is there already, or the one that a part belongs to is not.
    """
    module = cst.parse_module(target)
    body = list(module.body)
    added: list[cst.CSTNode] = []
    for number, (original, renamed) in enumerate(donor.pairs):
        name, new_name = get_name(original), get_name(renamed)
        if name is None or not donor.mentions(original):
            continue
        place = find_definition(body, new_name)
        if donor.pattern.search(name):
            if new_name in list_known(body):
                raise NewError(f"{new_name} is there already: choose another name")
            body.insert(find_place(body, donor, number), renamed)
            added.append(renamed)
            continue
        parts = donor.find_parts(number)
        insertion = Insertion(parts, to_this_subject(parts))
        if place is not None and parts.nodes:
            is_simple = isinstance(body[place], cst.SimpleStatementLine)
            if is_simple and LAST_COMMENT.search(to_code(body[place])):
                raise NewError(f"{new_name} ends with a comment: put that above its line")
            changed = body[place].visit(insertion)
            assert isinstance(changed, Statement)
            body[place] = changed
        if insertion.inserted != len(parts.nodes):
            raise NewError(f"{new_name} is missing, or has another form than in the skeleton")
        added += parts.nodes
    return import_needed(module.with_changes(body=body), added, donor).code


def graft_cases(target: str, donor: Donor, classes: Collection[str]) -> str:
    """Return the text of a module with the donor's cases in each `match` that has all `classes`."""
    found = [
        donor.find_parts(number)
        for number, (original, _) in enumerate(donor.pairs)
        if get_name(original) and donor.mentions(original)
    ]
    cases = [case for parts in found for case in parts.cases]
    parts = Parts(cases=cases)

    def choose(match: cst.Match) -> Sequence[cst.MatchCase]:
        return [case for _, case in cases] if list_classes(match) >= set(classes) else []

    module = cst.parse_module(target)
    insertion = Insertion(parts, choose)
    changed = module.visit(insertion)
    return import_needed(changed, parts.nodes, donor).code if insertion.inserted else target


class Insertion(cst.CSTTransformer):
    """Adds parts to a definition; `inserted` is their number."""

    def __init__(
        self, parts: Parts, choose: Callable[[cst.Match], Sequence[cst.MatchCase]]
    ) -> None:
        super().__init__()
        self._parts = parts
        self._choose = choose
        self._first: cst.CSTNode | None = None
        self.inserted = 0

    def leave_Match(self, original_node: cst.Match, updated_node: cst.Match) -> cst.Match:
        """Cases come before the one for all others."""
        chosen = self._choose(original_node)
        cases = list(updated_node.cases)
        is_last_for_all = (
            isinstance(cases[-1].pattern, cst.MatchAs) and not cases[-1].pattern.pattern
        )
        cases[len(cases) - is_last_for_all : len(cases) - is_last_for_all] = chosen
        self.inserted += len(chosen)
        return updated_node.with_changes(cases=cases)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """A union of one class is its name."""
        value = updated_node.value
        if not isinstance(value, cst.Name | cst.BinaryOperation):
            return updated_node
        joined: cst.BaseExpression = value.with_changes(lpar=[], rpar=[])
        for member in self._parts.members:
            joined = cst.BinaryOperation(joined, cst.BitOr(), member)
            self.inserted += 1
        return updated_node.with_changes(
            value=joined.with_changes(lpar=value.lpar, rpar=value.rpar)
        )

    def visit_Dict(self, node: cst.Dict) -> None:
        self._first = self._first or node

    def visit_Tuple(self, node: cst.Tuple) -> None:
        self._first = self._first or node

    def leave_Dict(self, original_node: cst.Dict, updated_node: cst.Dict) -> cst.Dict:
        return self._add_entries(original_node, updated_node)

    def leave_Tuple(self, original_node: cst.Tuple, updated_node: cst.Tuple) -> cst.Tuple:
        return self._add_entries(original_node, updated_node)

    def _add_entries(self, original: Display, updated: Display) -> Display:
        """Only the first dict or tuple of a definition gets entries, of its own kind."""
        if original is self._first:
            for keys, entry in self._parts.entries:
                if isinstance(original, cst.Dict) == bool(keys or is_of_dict(entry)):
                    updated = add_entry(updated, keys, entry)
                    self.inserted += 1
        return updated


def is_of_dict(entry: Entry) -> bool:
    return isinstance(entry, cst.BaseDictElement)


def add_entry(display: Display, keys: Keys, entry: Entry) -> Display:
    """Return a dict, a list or a tuple with one more entry, in the one that the keys lead to.

    Raises:
        NewError: what a key leads to is none of these, or it ends with a comment.
    """
    elements: list[Entry] = [*display.elements]
    places = {to_code(e.key): n for n, e in enumerate(elements) if isinstance(e, cst.DictElement)}
    if keys and keys[0] in places:
        place = places[keys[0]]
        outer = elements[place]
        value: cst.Dict | cst.List
        match outer.value, entry:
            case cst.Dict() as entries, cst.DictElement():
                value = add_entry(entries, keys[1:], entry)
            case cst.List() as listed, cst.Element():
                value = add_entry(listed, keys[1:], entry)
            case _:
                raise NewError(f"the value of {keys[0]} is no dict, as it is in the skeleton")
        elements[place] = outer.with_changes(value=value)
        return display.with_changes(elements=elements)
    if re.search(r"#.*\n\s*.\Z", to_code(display)):
        raise NewError("a list of entries ends with a comment: put that above its line")
    for key in reversed(keys):
        value = cst.List([entry]) if isinstance(entry, cst.BaseElement) else cst.Dict([entry])
        entry = cst.DictElement(cst.parse_expression(key), value)
    if elements and isinstance(elements[-1].comma, cst.MaybeSentinel):
        elements[-1] = elements[-1].with_changes(comma=cst.Comma())
    return display.with_changes(elements=[*elements, entry])


def to_this_subject(parts: Parts) -> Callable[[cst.Match], Sequence[cst.MatchCase]]:
    """Return what chooses the cases of a `match`: those of one with the same subject."""

    def choose(match: cst.Match) -> Sequence[cst.MatchCase]:
        return [case for subject, case in parts.cases if subject == to_code(match.subject)]

    return choose


def list_classes(match: cst.Match) -> set[str]:
    """Return the classes for which a `match` has a case."""
    found: set[str] = set()
    for case in match.cases:
        pattern = case.pattern
        patterns = (
            [each.pattern for each in pattern.patterns]
            if isinstance(pattern, cst.MatchOr)
            else [pattern]
        )
        found |= {to_code(each.cls) for each in patterns if isinstance(each, cst.MatchClass)}
    return found


def find_place(body: Sequence[Statement], donor: Donor, number: int) -> int:
    """Return where a definition of the donor goes: where its neighbours in the donor are."""
    for _, following in donor.pairs[number + 1 :]:
        if (place := find_definition(body, get_name(following))) is not None:
            return place
    for _, preceding in reversed(donor.pairs[:number]):
        if (place := find_definition(body, get_name(preceding))) is not None:
            return place + 1
    return len(body)


def find_definition(body: Sequence[Statement], name: str | None) -> int | None:
    places = [number for number, each in enumerate(body) if name and get_name(each) == name]
    return places[0] if places else None


def import_needed(module: cst.Module, added: Iterable[cst.CSTNode], donor: Donor) -> cst.Module:
    """Import what the added nodes use and the donor imports, unless it is known already.

    Raises:
        NewError: a name of the thing is known, and so means something else.
    """
    used = {name for node in added for name in list_names(node)}
    known = list_known(module.body)
    for original, renamed in donor.pairs:
        names = zip(list_imports(original), list_imports(renamed), strict=True)
        for (_, name), (_, new_name) in names:
            if donor.mentions(name) and get_bound(new_name) in used & known:
                raise NewError(f"{get_bound(new_name)} is there already: choose another name")
    lines = [
        statement.with_changes(
            body=[line.with_changes(names=[name.with_changes(comma=cst.MaybeSentinel.DEFAULT)])]
        )
        for _, statement in donor.pairs
        for line, name in list_imports(statement)
        if get_bound(name) in used - known
    ]
    return insert_imports(module, lines)


def insert_imports(module: cst.Module, lines: Sequence[Statement]) -> cst.Module:
    """Return the module with imports after those that it has."""
    numbers = [number for number, each in enumerate(module.body, 1) if list_imports(each)]
    first = numbers[-1] if numbers else 1
    body = [*module.body[:first], *lines, *module.body[first:]]
    return module.with_changes(body=body)


def list_imports(
    statement: cst.CSTNode,
) -> list[tuple[cst.Import | cst.ImportFrom, cst.ImportAlias]]:
    """Return the imported names of a statement; none if it is no import."""
    match statement:
        case cst.SimpleStatementLine(body=[(cst.Import() | cst.ImportFrom()) as line]):
            names = line.names
            return [] if isinstance(names, cst.ImportStar) else [(line, name) for name in names]
    return []


def list_known(body: Iterable[cst.CSTNode]) -> set[str | None]:
    """Return the names that statements define or import."""
    imported = {get_bound(name) for each in body for _, name in list_imports(each)}
    return {get_name(each) for each in body} | imported


def get_bound(name: cst.ImportAlias) -> str:
    """Return the name that an import defines."""
    return name.evaluated_alias or name.evaluated_name.partition(".")[0]


def list_names(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.Name):
        yield node.value
    for child in node.children:
        yield from list_names(child)


def get_name(statement: cst.CSTNode) -> str | None:
    """Return the name that a statement of a module defines; None if it is none, or several."""
    match statement:
        case cst.FunctionDef(name=cst.Name(value=name)) | cst.ClassDef(name=cst.Name(value=name)):
            return name
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])
                | cst.AnnAssign(target=cst.Name(value=name))
            ]
        ):
            return name
    return None


def to_code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
