"""Rewrite code of an older form, so that it runs on this release.

A release that changes what the code of a copy uses has a codemod here. Each one changes nothing in
code of the new form: so all run at each upgrade, from whatever release on and as often as it is
begun, and a test runs them on this checkout.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import libcst as cst
from libcst import matchers as m
from libcst.helpers import get_full_name_for_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Codemod:
    """What rewrites the modules that import a name from a module of this repository."""

    module: str
    name: str
    transform: Callable[[], cst.CSTTransformer]

    def apply(self, module: cst.Module) -> cst.Module:
        """Return the module in the new form; itself if it does not import the name."""
        if not imports(module, self.module, self.name):
            return module
        return module.visit(self.transform())


def rewrite(text: str, codemods: Iterable[Codemod]) -> str:
    """Return the text of a module in the form of this release; the same if it has that already.

    Raises:
        libcst.ParserSyntaxError: it is no Python, and names what a codemod is about.
    """
    named = [each for each in codemods if each.name in text]
    if not named:
        return text
    module = cst.parse_module(text)
    for each in named:
        module = each.apply(module)
    return module.code


def imports(module: cst.Module, source: str, name: str) -> bool:
    """Whether a module has `from source import name` at its top, under this name."""
    return any(
        isinstance(line, cst.ImportFrom)
        and line.module is not None
        and get_full_name_for_node(line.module) == source
        and not isinstance(line.names, cst.ImportStar)
        and any(each.evaluated_name == name and not each.asname for each in line.names)
        for statement in module.body
        if isinstance(statement, cst.SimpleStatementLine)
        for line in statement.body
    )


class TableIsName(cst.CSTTransformer):
    """Make `ReadModel(table=...)` `ReadModel(name=...)`: its table also depends on its version."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        given = {each.keyword.value: each for each in updated_node.args if each.keyword}
        if not m.matches(updated_node.func, m.Name("ReadModel")) or "name" in given:
            return updated_node
        args = [
            each.with_changes(keyword=cst.Name("name")) if each is given.get("table") else each
            for each in updated_node.args
        ]
        return updated_node.with_changes(args=args)


SCOPES = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
Node = TypeVar("Node", bound=cst.CSTNode)


class DomainIsSeveral(cst.CSTTransformer):
    """Make the domain of `merge_reactions`, if it is one mapping, a tuple of one.

    It is one if it is written there, or is a name that was annotated as Reactions before, in the
    same function or in the module.
    """

    def __init__(self) -> None:
        super().__init__()
        self._scopes: list[dict[str, bool]] = [{}]
        """Whether names are mappings, from the module's on to those of the innermost scope."""

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, SCOPES):
            self._scopes.append({})
        return super().on_visit(node)

    def on_leave(
        self, original_node: Node, updated_node: Node
    ) -> Node | cst.RemovalSentinel | cst.FlattenSentinel[Node]:
        if isinstance(original_node, SCOPES):
            self._scopes.pop()
        return super().on_leave(original_node, updated_node)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._note(node.target, node.annotation)

    def visit_Param(self, node: cst.Param) -> None:
        self._note(node.name, node.annotation)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._note(node.target, None)

    def visit_For(self, node: cst.For) -> None:
        self._note(node.target, None)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._note(node.name, None)

    def _note(self, target: cst.BaseExpression, annotation: cst.Annotation | None) -> None:
        if isinstance(target, cst.Name):
            is_mapping = annotation and m.matches(annotation.annotation, m.Name("Reactions"))
            self._scopes[-1][target.value] = bool(is_mapping)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if not m.matches(updated_node.func, m.Name("merge_reactions")):
            return updated_node
        return updated_node.with_changes(args=[self._wrap(each) for each in updated_node.args])

    def _wrap(self, given: cst.Arg) -> cst.Arg:
        if given.star or not self._is_mapping(given.value):
            return given
        return given.with_changes(value=cst.Tuple([cst.Element(given.value, comma=cst.Comma())]))

    def _is_mapping(self, value: cst.BaseExpression) -> bool:
        if not isinstance(value, cst.Name):
            return isinstance(value, cst.Dict)
        found = (names[value.value] for names in reversed(self._scopes) if value.value in names)
        return next(found, False)


CODEMODS: Sequence[Codemod] = (
    Codemod(
        module="shared.projections.read_models",
        name="ReadModel",
        transform=TableIsName,
    ),
    Codemod(
        module="shared.inbox.consumer",
        name="merge_reactions",
        transform=DomainIsSeveral,
    ),
)
"""Oldest first."""
