"""`make generate`: write the sections of AGENTS.md that follow from the code.

A section is between two comments, `<!-- generated: NAME -->` and `<!-- end -->`. What is around it
is written by hand, and stays. A project that has removed the page gets none.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from scripts.changes import CHECKOUT, ChangeError, report, run_command
from scripts.check_imports import Rule, list_configurations, list_rules_between, read_rules
from scripts.documentation.markdown import code, codes, join_parts, table
from scripts.documentation.reference import verbs
from scripts.documentation.reference.http import read_documents
from scripts.openapi import list_operations

PAGE = CHECKOUT / "AGENTS.md"
BEGIN, END = "<!-- generated: ", "<!-- end -->"
SECTION = re.compile(rf"({BEGIN}(\S+) -->\n).*?(?={END})", re.DOTALL)


def main() -> int:
    """Return 0; 1 with a line on standard error."""
    return run_command(renew)


def renew() -> int:
    """Write the sections again.

    Raises:
        ChangeError: the page has a section that is unknown here, or has no end.
    """
    if PAGE.exists():
        before = PAGE.read_text()
        if (after := fill(before)) != before:
            PAGE.write_text(after)
            report(f"wrote {PAGE.name}")
    return 0


def fill(page: str) -> str:
    """Return the page with the sections as they follow from the code.

    Raises:
        ChangeError: a section is unknown, or has no end.
    """

    def replace(match: re.Match[str]) -> str:
        mark, name = match.groups()
        if name not in SECTIONS:
            known = ", ".join(SECTIONS)
            raise ChangeError(f"{PAGE.name} has a section {name!r}: name one of {known}")
        return f"{mark}\n{SECTIONS[name]()}\n"

    filled, sections = SECTION.subn(replace, page)
    if not sections == page.count(BEGIN) == page.count(END):
        raise ChangeError(f"{PAGE.name} has a section without an end: write {END} after each")
    return filled


def write_rules() -> str:
    """Return what `make imports` demands: between packages, then within each of them."""
    return join_parts(
        *describe_rules("Between packages", list_rules_between()),
        *(
            part
            for path in list_configurations()
            if (rules := read_rules(path))
            for part in describe_rules(path.parent.name, rules)
        ),
    )


def describe_rules(where: str, rules: Sequence[Rule]) -> Iterator[str]:
    """Yield the parts of the page about contracts of import-linter."""
    yield f"### {where}"
    for rule in rules:
        if rule["type"] == "layers":
            yield f"{rule['name']}{describe_containers(rule)}:"
            yield f"```text\n{write_layers(rule['layers'])}\n```"
    yield "\n".join(
        f"- {rule['name']}: {describe_rule(rule)}" for rule in rules if rule["type"] != "layers"
    )


def describe_containers(rule: Rule) -> str:
    """Return in which packages a contract has its layers, if they are named apart."""
    return f", in {codes(rule['containers'])}" if "containers" in rule else ""


def write_layers(layers: Sequence[str]) -> str:
    """Return one layer per line, without the name of the package that all have."""
    text = "\n".join(layers)
    packages = {name.partition(".")[0] for name in re.findall(r"[\w.]+", text)}
    return re.sub(rf"\b(?<!\.){packages.pop()}\.", "", text) if len(packages) == 1 else text


def describe_rule(rule: Rule) -> str:
    """Return which modules a contract is about."""
    match rule:
        case {"type": "independence", "modules": modules}:
            return f"{codes(modules)}."
        case {"type": "forbidden", "source_modules": sources, "forbidden_modules": forbidden}:
            excepted = rule.get("ignore_imports", ())
            but = f", but for {codes(excepted)}" if excepted else ""
            return f"{codes(sources)} must not import {codes(forbidden)}{but}."
        case _:
            return f"{code(rule['type'])}."


def write_codes() -> str:
    """Return the codes of all APIs by the status that they come with.

    Without its phrase, which not every Python has in the same words.
    """
    found: defaultdict[int, set[str]] = defaultdict(set)
    for document in read_documents().values():
        for operation in list_operations(document):
            for status, name in operation.refusals:
                found[status].add(name)
    rows = ((code(status), codes(sorted(found[status]))) for status in sorted(found))
    return table(("status", "codes"), rows)


SECTIONS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {"verbs": verbs.list_verbs, "rules": write_rules, "codes": write_codes}
)


if __name__ == "__main__":
    sys.exit(main())
