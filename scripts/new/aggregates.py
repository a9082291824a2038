"""The aggregates of a checkout, with the names that the code of each gives to what all have."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from scripts.new.words import NewError
from shared.runtime.declarations import Declarations, Service, Topic

DECIDER = re.compile(r"^[A-Z0-9_]+: Decider\[\w+, \w+, \w+\]", re.MULTILINE)
"""The definition by which the module of the rules is found."""
GUARD = re.compile(r"\b(require_\w+)\(")
REPEATED = "tests/integration/test_repeated_requests.py"
ERRORS = {"NotFound": "missing", "Gone": "gone", "Refused": "conflicts"}
"""What `refusals` calls the codes of an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregate of a service, such as `user`, whose topic is `users.v1`."""

    singular: str
    plural: str
    service: Service
    package: str
    """With its modules, such as `orders_svc.item`."""
    topic: Topic
    guard: str
    """The function that returns the state if the aggregate is there."""
    state: str
    """The type of that."""
    refusals: Mapping[str, Sequence[str]]
    """The codes with which the guard refuses, by their argument of `refusals`."""
    unknown: str
    """The value of the code for an aggregate that is not there."""
    beginning: str
    """The function in the test of repeated requests that returns the first of a stream."""
    types: Sequence[tuple[str, str]]
    """The name and the class of each event; a stream begins with the first."""

    @property
    def source(self) -> str:
        """The folder of its modules, from the checkout on."""
        return locate(self.service, self.package)

    @property
    def name(self) -> str:
        """As it stands in the names of classes, such as `User`."""
        return self.singular.capitalize()

    @property
    def id(self) -> str:
        """The field with its id."""
        return f"{self.singular}_id"

    @property
    def address(self) -> str:
        """The path of one of them in the API."""
        return f"/v1/{self.plural}/{{{self.id}}}"

    def get_type(self, event: str) -> str:
        """Return the name of an event in its topic, such as `user-suspended`."""
        return f"{self.singular}-{event}"


def locate(service: Service, name: str) -> str:
    """Return the path of a package or a module, without its ending, from the checkout on."""
    return f"{service.folder}/src/{name.replace('.', '/')}"


def find_aggregate(root: Path, declared: Declarations, name: str) -> Aggregate:
    """Return the aggregate with a name such as `user`.

    Raises:
        NewError: there is none, or its modules have another form than those of the skeleton.
    """
    found = list_rules(root, declared)
    chosen = [each for each in found if each[0].stem == name]
    if not chosen:
        names = ", ".join(rules.stem for rules, _, _ in found)
        raise NewError(f"{name!r} is no aggregate; there are: {names or 'none'}")
    if len(chosen) > 1:
        raise NewError(f"{' and '.join(str(rules) for rules, _, _ in chosen)} have the same name")
    return read_aggregate(root, *chosen[0])


def list_rules(root: Path, declared: Declarations) -> list[tuple[PurePosixPath, Service, Topic]]:
    """Return the module with the rules of each aggregate, which has its name."""
    return [
        (rules, service, topic)
        for service in declared.services
        for topic in service.topics.values()
        for rules in find_rules(root, service, topic)
    ]


def find_rules(root: Path, service: Service, topic: Topic) -> list[PurePosixPath]:
    """Return the module next to a contract that defines a decider, if there is one."""
    folder = PurePosixPath(locate(service, topic.contract)).parent
    modules = sorted((root / folder).glob("*.py"))
    return [folder / path.name for path in modules if DECIDER.search(path.read_text())]


def read_aggregate(root: Path, rules: PurePosixPath, service: Service, topic: Topic) -> Aggregate:
    """Raises NewError."""
    module = ast.parse((root / rules).read_text())
    functions = {each.name: each for each in module.body if isinstance(each, ast.FunctionDef)}
    guard = find_guard(rules, functions)
    returns = functions[guard].returns
    refusals = list_refusals(functions, guard)
    if "missing" not in refusals:
        raise NewError(f"{rules}: {guard} raises no NotFound(CODE, ...)")
    plural = topic.name.partition(".")[0]
    if not plural.isidentifier():
        raise NewError(f"{topic.name}: a topic that is no word has no names to follow from it")
    return Aggregate(
        singular=rules.stem,
        plural=plural,
        service=service,
        package=topic.contract.rpartition(".")[0],
        topic=topic,
        guard=guard,
        state=ast.unparse(returns) if returns else rules.stem.capitalize(),
        refusals=refusals,
        unknown=get_text(module, refusals["missing"][0]),
        beginning=find_beginning(root, service, plural),
        types=read_types(root / rules.parent / "events.py"),
    )


def find_beginning(root: Path, service: Service, plural: str) -> str:
    """Return the function that prepares the first request to an address; "" without the test.

    Raises:
        NewError: there is none in the test.
    """
    path = f"{service.folder}/{REPEATED}"
    if not (root / path).exists():
        return ""
    route = f'route="POST /v1/{plural}"'
    functions = re.split(r"^async def ", (root / path).read_text(), flags=re.MULTILINE)[1:]
    found = [each.partition("(")[0] for each in functions if route in each]
    if not found:
        raise NewError(f"{path} has no function that returns WriteRequest({route}, ...)")
    return found[0]


def find_guard(rules: PurePosixPath, functions: Mapping[str, ast.FunctionDef]) -> str:
    """Return the function `require_…` that `decide` calls most. Raises NewError."""
    decide = functions.get("decide")
    calls: list[str] = GUARD.findall(ast.unparse(decide)) if decide else []
    known = [name for name in calls if name in functions]
    if not known:
        raise NewError(f"{rules} has no `decide` that calls a function `require_…` of its own")
    return max(known, key=known.count)


def list_refusals(functions: Mapping[str, ast.FunctionDef], guard: str) -> dict[str, list[str]]:
    """Return the codes with which a guard, and those that it calls, refuse."""
    found: dict[str, list[str]] = {kind: [] for kind in ERRORS.values()}
    for name, code in find_errors(functions, guard):
        if code not in found[ERRORS[name]]:
            found[ERRORS[name]].append(code)
    return {kind: codes for kind, codes in found.items() if codes}


def find_errors(functions: Mapping[str, ast.FunctionDef], name: str) -> Iterator[tuple[str, str]]:
    """Yield the class and the code of each error that a function raises."""
    for node in ast.walk(functions[name]):
        match node:
            case ast.Call(func=ast.Name(id=error), args=[code, *_]) if error in ERRORS:
                yield error, ast.unparse(code)
            case ast.Call(func=ast.Name(id=called)) if called in functions and called != name:
                yield from find_errors(functions, called)


def read_types(path: Path) -> list[tuple[str, str]]:
    """Return the type names and the classes in the codec of a module. Raises NewError."""
    module = ast.parse(path.read_text())
    for node in module.body:
        match node:
            case ast.AnnAssign(
                target=ast.Name(id="CODEC"), value=ast.Call(args=[ast.Dict() as types, *_])
            ) if types.keys:
                pairs = zip(types.keys, types.values, strict=True)
                return [
                    (get_text(module, ast.unparse(key)), ast.unparse(type_))
                    for key, type_ in pairs
                    if key
                ]
    raise NewError(f"{path.parent.name}/{path.name} has no `CODEC: Codec[…] = Codec({{…}})`")


def get_text(module: ast.Module, expression: str) -> str:
    """Return the text that an expression is, or a name in the module stands for.

    Raises:
        NewError: it is neither.
    """
    for node in module.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(value)))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(value)))
            ) if name == expression:
                return value
    match ast.parse(expression, mode="eval").body:
        case ast.Constant(value=str(value)):
            return value
    raise NewError(f"{expression} is neither a text nor the name of one")
