"""Cut statements and elements out of Python code."""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import CodePosition, MetadataWrapper, ParentNodeProvider, PositionProvider

from scripts.parts.comments import (
    INSTRUCTION,
    cut_code_comments,
    cut_docstrings,
    find_comments,
)

ELEMENTS = (cst.BaseElement, cst.BaseDictElement, cst.ImportAlias)
DISPLAYS = (cst.List, cst.Set, cst.Tuple, cst.Dict)
UNPACKED = (cst.AssignTarget, cst.Return, cst.Yield, cst.For, cst.CompFor)
ARGUMENTS = (cst.Arg, cst.Param)
BLOCKS = (cst.ExceptHandler, cst.MatchCase)
STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement, *BLOCKS)
NAMED = (cst.FunctionDef, cst.ClassDef)

T = TypeVar("T", bound=cst.CSTNode)


def cut_python(
    text: str, pattern: re.Pattern[str], marks: re.Pattern[str], is_test: bool = False
) -> str:
    """Return `text` without the smallest units that mention a part.

    A mention that no unit has to itself stays, such as one inside of a long text; all of them stay
    where the rest would be no Python.

    Raises:
        SyntaxError: `text` is no Python.
    """
    left = cut_code_comments(cut_docstrings(text, pattern), pattern)
    if not pattern.search(left):
        return left
    try:
        left = cut_units(left, pattern, marks, is_test)
        ast.parse(left)
    except (SyntaxError, cst.CSTValidationError, cst.ParserSyntaxError):
        return text
    return left


def cut_units(text: str, pattern: re.Pattern[str], marks: re.Pattern[str], is_test: bool) -> str:
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    units = Units(wrapper)
    comments = find_comments(text)
    for mention in pattern.finditer(text):
        position = locate(text, mention)
        if position.column < comments.get(position.line, sys.maxsize):
            units.cut_mention(position, is_test)
    for mark in marks.finditer(text):
        units.cut_marked(locate(text, mark).line)
    units.cut_emptied()
    return wrapper.module.visit(Removal(units, pattern)).code


def locate(text: str, found: re.Match[str]) -> CodePosition:
    """Return where the match begins, but for the blanks that it begins with."""
    start = found.end() - len(found[0].lstrip())
    return CodePosition(
        line=text.count("\n", 0, start) + 1, column=start - text.rfind("\n", 0, start) - 1
    )


class Units:
    """The nodes of a module, and those that go (`gone`)."""

    def __init__(self, wrapper: MetadataWrapper) -> None:
        self.gone: set[cst.CSTNode] = set()
        self.operands: set[cst.CSTNode] = set()
        """Of `|`, such as the members of a union: what goes leaves the other side."""
        self.last_names: set[cst.CSTNode] = set()
        """Of imports without brackets: after these stands no comma."""
        self._parents = wrapper.resolve(ParentNodeProvider)
        self._bounds = {
            node: (bounds.start, bounds.end)
            for node, bounds in wrapper.resolve(PositionProvider).items()
        }

    def cut_mention(self, position: CodePosition, is_test: bool) -> None:
        """Cut the smallest unit around a mention."""
        around = [node for node in self._bounds if self._contains(node, position)]
        if not around:
            return
        unit = self._choose(min(around, key=self._extent), position.line, is_test)
        if unit is not None:
            (self.operands if self._is_operand(unit) else self.gone).add(unit)

    def _contains(self, node: cst.CSTNode, position: CodePosition) -> bool:
        start, end = self._bounds[node]
        return before(start, position) and not before(end, position)

    def _extent(self, node: cst.CSTNode) -> tuple[int, int]:
        """How much of the text a node has: of two nodes around a position, the inner has less."""
        start, end = self._bounds[node]
        if start.line == end.line:
            return 0, end.column - start.column
        return end.line - start.line, 0

    def _choose(self, node: cst.CSTNode, line: int, is_test: bool) -> cst.CSTNode | None:
        """Return the unit that goes with a mention in `node`, or None if there is none."""
        for each in self._climb(node):
            if self._is_operand(each) or (isinstance(each, ELEMENTS) and self._is_alone(each)):
                return each
            if isinstance(each, cst.Decorator):
                return self._find_test(each, is_test) or self._parents[each]
            if isinstance(each, STATEMENTS):
                test = self._find_test(each, is_test)
                return test or (each if self._goes_by_its_line(each, line) else None)
        return None

    def _climb(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the node and all around it."""
        while not isinstance(node, cst.Module):
            yield node
            node = self._parents[node]

    def _is_operand(self, node: cst.CSTNode) -> bool:
        """Whether a node is one of the names that `|` joins, and others but None are left."""
        if not isinstance(node, cst.Name):
            return False
        joined: cst.CSTNode = node
        while is_union(self._parents.get(joined)):
            joined = self._parents[joined]
        left = {*list_operands(joined)} - self.operands - {node}
        return any(not isinstance(each, cst.Name) or each.value != "None" for each in left)

    def _is_alone(self, element: cst.CSTNode) -> bool:
        """Whether an element means the same without the others.

        What is in a list of lists is a row, and goes as a whole. The elements of a tuple mean what
        their position says, if they are of different kinds, or returned or unpacked.
        """
        display = self._parents[element]
        around = self._parents[display]
        if isinstance(display, DISPLAYS) and isinstance(around, cst.Element):
            return False
        if not isinstance(display, cst.Tuple):
            return True
        kinds = {type(each.value) for each in display.elements if isinstance(each, cst.Element)}
        if isinstance(around, cst.Assign) and any(
            isinstance(target.target, cst.Tuple) for target in around.targets
        ):
            return False
        return len(kinds) == 1 and not isinstance(around, UNPACKED)

    def _find_test(self, node: cst.CSTNode, is_test: bool) -> cst.CSTNode | None:
        """Return the outermost test function around a node of a test."""
        tests = [
            each
            for each in self._climb(node)
            if isinstance(each, cst.FunctionDef) and each.name.value.startswith("test_")
        ]
        return tests[-1] if tests and is_test else None

    def _goes_by_its_line(self, statement: cst.CSTNode, line: int) -> bool:
        """Whether a mention in this line means the statement, not only something in it."""
        if isinstance(statement, NAMED):
            return self._bounds[statement.name][0].line == line
        if isinstance(statement, cst.If):
            alone = statement.orelse is None or isinstance(self._parents[statement], cst.If)
            return alone and self._bounds[statement][0].line == line
        if isinstance(statement, cst.SimpleStatementLine):
            is_name = isinstance(statement.body[0], cst.Global | cst.Nonlocal)
            if is_name or len(statement.body) > 1 or is_text(statement):
                return False
        simple = isinstance(statement, (cst.SimpleStatementLine, *BLOCKS))
        return simple and self._bounds[statement][0].line == line

    def cut_marked(self, line: int) -> None:
        """Cut the largest unit that begins in a line."""
        begun = [
            node
            for node, (start, _) in self._bounds.items()
            if isinstance(node, (*ELEMENTS, *ARGUMENTS, *STATEMENTS)) and start.line == line
        ]
        if begun:
            self.gone.add(max(begun, key=self._extent))

    def cut_emptied(self) -> None:
        """Cut what has nothing left in it, and the text that describes what is gone."""
        before_round = -1
        while len(self.gone) != before_round:
            before_round = len(self.gone)
            for node in list(self._bounds):
                match node:
                    case cst.List() | cst.Set() | cst.Tuple() | cst.Dict():
                        self._cut_display(node, node.elements)
                    case cst.Import(names=names) | cst.ImportFrom(names=[*names]):
                        left = [name for name in names if name not in self.gone]
                        if not left:
                            self.gone.add(self._parents[node])
                        elif not getattr(node, "lpar", None):
                            self.last_names.add(left[-1])
                    case cst.IndentedBlock(body=body):
                        self._cut_described(body)
                        self._cut_block(node)
                    case cst.Module(body=body):
                        self._cut_described(body)

    def _cut_display(self, node: cst.CSTNode, elements: Sequence[cst.CSTNode]) -> None:
        """A list of which all would go, goes; where it cannot, they stay."""
        if not elements or not self.gone.issuperset(elements):
            return
        if any(each in self.gone for each in self._climb(node)):
            return
        parent = self._parents[node]
        if isinstance(parent, cst.Assign | cst.AnnAssign):
            unit: cst.CSTNode | None = self._parents[parent]
        else:
            unit = self._choose(parent, self._bounds[node][0].line, is_test=False)
        if unit is None:
            self.gone -= set(elements)
        else:
            self.gone.add(unit)

    def _cut_described(self, body: Sequence[cst.CSTNode]) -> None:
        for each, following in pairwise(body):
            if each in self.gone and is_text(following):
                self.gone.add(following)

    def _cut_block(self, block: cst.IndentedBlock) -> None:
        """What has nothing left in its body goes, unless another body belongs to it."""
        owner = self._parents[block]
        if isinstance(owner, cst.Else | cst.Finally | cst.Try) or getattr(owner, "orelse", None):
            return
        left = [each for each in block.body if not is_text(each)]
        if left and self.gone.issuperset(left):
            self.gone.add(owner)


def before(one: CodePosition, other: CodePosition) -> bool:
    return (one.line, one.column) <= (other.line, other.column)


def is_text(node: cst.CSTNode) -> bool:
    """Whether a statement is only a text, which describes what it follows."""
    match node:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return True
    return False


class Removal(cst.CSTTransformer):
    """Leaves out the nodes that go, and comments at the end of a line with a mention."""

    def __init__(self, units: Units, pattern: re.Pattern[str]) -> None:
        super().__init__()
        self._units = units
        self._gone = units.gone
        self._pattern = pattern

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self._gone and super().on_visit(node)

    def on_leave(
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        if original_node in self._gone:
            return cst.RemoveFromParent()
        return super().on_leave(original_node, updated_node)

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        operands = self._units.operands
        if operands.issuperset(list_operands(original_node.right)):
            return in_brackets_of(updated_node, updated_node.left)
        if operands.issuperset(list_operands(original_node.left)):
            return in_brackets_of(updated_node, updated_node.right)
        return updated_node

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        """An `elif` that goes leaves those after it."""
        following = original_node.orelse
        if following not in self._gone:
            return updated_node
        while isinstance(following, cst.If) and following in self._gone:
            following = following.orelse
        rest = following.visit(self) if following else None
        return updated_node.with_changes(orelse=rest)

    def leave_ImportAlias(
        self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias
    ) -> cst.ImportAlias:
        if original_node in self._units.last_names:
            return updated_node.with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node

    def leave_List(self, original_node: cst.List, updated_node: cst.List) -> cst.List:
        return self._without_last_comment(original_node, updated_node, "rbracket")

    def leave_Set(self, original_node: cst.Set, updated_node: cst.Set) -> cst.Set:
        return self._without_last_comment(original_node, updated_node, "rbrace")

    def leave_Dict(self, original_node: cst.Dict, updated_node: cst.Dict) -> cst.Dict:
        return self._without_last_comment(original_node, updated_node, "rbrace")

    def _without_last_comment(self, original: Any, updated: T, closing: str) -> T:
        """The comment of a last element is written in front of the bracket."""
        if not original.elements or original.elements[-1] not in self._gone:
            return updated
        bracket = getattr(updated, closing)
        if not isinstance(bracket.whitespace_before, cst.ParenthesizedWhitespace):
            return updated
        space = bracket.whitespace_before.with_changes(first_line=cst.TrailingWhitespace())
        return updated.with_changes(**{closing: bracket.with_changes(whitespace_before=space)})

    def leave_TrailingWhitespace(
        self, original_node: cst.TrailingWhitespace, updated_node: cst.TrailingWhitespace
    ) -> cst.TrailingWhitespace:
        comment = updated_node.comment.value if updated_node.comment else ""
        if self._pattern.search(comment) and not INSTRUCTION.match(comment):
            return cst.TrailingWhitespace(newline=updated_node.newline)
        return updated_node


def is_union(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr)


def list_operands(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what `|` joins; a node that is no such operation is one operand."""
    if isinstance(node, cst.BinaryOperation) and is_union(node):
        yield from list_operands(node.left)
        yield from list_operands(node.right)
    else:
        yield node


def in_brackets_of(outer: cst.BinaryOperation, operand: cst.BaseExpression) -> cst.BaseExpression:
    """Return what is left of an operation, in the brackets that both operands were in."""
    return operand.with_changes(
        lpar=[*outer.lpar, *operand.lpar], rpar=[*operand.rpar, *outer.rpar]
    )
