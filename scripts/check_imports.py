"""`make imports`: which package can import which, and which module of a package.

Rules between the services follow from their declarations. Rules within a folder are in its own
pyproject.toml, under `[tool.importlinter]`.
"""

import json
import pathlib
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from importlinter.cli import lint_imports

from scripts.changes import CHECKOUT
from shared.runtime.declarations import load_declarations

Rule: TypeAlias = Mapping[str, Any]
"""A contract of import-linter."""


def main() -> int:
    """0 if every import is allowed, 1 if not; import-linter prints which one is forbidden."""
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder, "importlinter.toml")
        rules.write_text(configure(list_packages(), list_rules_between()))
        configs = [rules, *(path for path in list_configurations() if read_rules(path))]
        # A cached graph knows a file by its time of change, and can be that of before an edit.
        failed = [
            config for config in configs if lint_imports(str(config), no_cache=True, no_logo=True)
        ]
    return 1 if failed else 0


def list_configurations() -> Sequence[pathlib.Path]:
    """Return the files of packages that can have rules of their own, by folder."""
    return sorted(CHECKOUT.glob("*/pyproject.toml"))


def read_rules(path: pathlib.Path) -> Sequence[Rule]:
    """Return the rules within a package; none if its file has none."""
    tools = tomllib.loads(path.read_text()).get("tool", {})
    rules: Sequence[Rule] = tools.get("importlinter", {}).get("contracts", ())
    return rules


def list_rules_between() -> Sequence[Rule]:
    """Return the rules between packages."""
    services, stack = list_services(), read_packages("infra")
    return [
        {"name": "No service knows another one", "type": "independence", "modules": services},
        forbid("What is shared knows no service", ["shared"], [*services, *stack]),
        forbid("The stack runs services, it does not import them", stack, services),
        forbid(
            "Nothing needs a lesson",
            [package for package in list_packages() if package != "lessons"],
            ["lessons"],
        ),
    ]


def list_packages() -> Sequence[str]:
    """Return all packages: those of services, and those at the top of the checkout."""
    return ["shared", *list_services(), *read_packages("infra"), *read_packages(".")]


def list_services() -> Sequence[str]:
    return [service.package for service in load_declarations().services]


def read_packages(folder: str) -> Sequence[str]:
    """Return the packages that a folder's pyproject.toml names."""
    project = tomllib.loads((CHECKOUT / folder / "pyproject.toml").read_text())
    return list(project["tool"]["uv"]["build-backend"]["module-name"])


def configure(packages: Sequence[str], rules: Sequence[Rule]) -> str:
    """Return the configuration of import-linter for rules between packages."""
    lines = ["[tool.importlinter]", f"root_packages = {json.dumps(packages)}"]
    for rule in rules:
        lines.append("[[tool.importlinter.contracts]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in rule.items()]
    return "\n".join(lines) + "\n"


def forbid(name: str, sources: Sequence[str], forbidden: Sequence[str]) -> Rule:
    """Return the rule that no source imports what is forbidden."""
    return {
        "name": name,
        "type": "forbidden",
        "source_modules": sources,
        "forbidden_modules": forbidden,
    }


if __name__ == "__main__":
    sys.exit(main())
