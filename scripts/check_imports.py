"""`make imports`: which package can import which, and which module of a package.

Rules between the services follow from their declarations. Rules within a folder are in its own
pyproject.toml, under `[tool.importlinter]`.
"""

import json
import pathlib
import sys
import tempfile
import tomllib
from collections.abc import Sequence

from importlinter.cli import lint_imports

from scripts.changes import CHECKOUT
from shared.runtime.declarations import load_declarations


def main() -> int:
    """0 if every import is allowed, 1 if not; import-linter prints which one is forbidden."""
    services = [service.package for service in load_declarations().services]
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder, "importlinter.toml")
        stack, others = read_packages("infra"), read_packages(".")
        rules.write_text(rules_between(services, stack, others))
        configs = [rules, *sorted(filter(has_rules, CHECKOUT.glob("*/pyproject.toml")))]
        # A cached graph knows a file by its time of change, and can be that of before an edit.
        failed = [
            config for config in configs if lint_imports(str(config), no_cache=True, no_logo=True)
        ]
    return 1 if failed else 0


def read_packages(folder: str) -> list[str]:
    """The packages that a folder's pyproject.toml names."""
    project = tomllib.loads((CHECKOUT / folder / "pyproject.toml").read_text())
    return list(project["tool"]["uv"]["build-backend"]["module-name"])


def has_rules(path: pathlib.Path) -> bool:
    return "importlinter" in tomllib.loads(path.read_text()).get("tool", {})


def rules_between(services: Sequence[str], stack: Sequence[str], others: Sequence[str]) -> str:
    """Return the configuration of import-linter for the rules between packages.

    `others` are those at the top of the checkout.
    """
    packages = ["shared", *services, *stack, *others]
    rules: list[dict[str, object]] = [
        {"name": "No service knows another one", "type": "independence", "modules": services},
        forbid("What is shared knows no service", ["shared"], [*services, *stack]),
        forbid("The stack runs services, it does not import them", stack, services),
        forbid(
            "Nothing needs a lesson",
            [package for package in packages if package != "lessons"],
            ["lessons"],
        ),
    ]
    lines = ["[tool.importlinter]", f"root_packages = {json.dumps(packages)}"]
    for rule in rules:
        lines.append("[[tool.importlinter.contracts]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in rule.items()]
    return "\n".join(lines) + "\n"


def forbid(name: str, sources: Sequence[str], forbidden: Sequence[str]) -> dict[str, object]:
    """Return the rule that no source imports what is forbidden."""
    return {
        "name": name,
        "type": "forbidden",
        "source_modules": sources,
        "forbidden_modules": forbidden,
    }


if __name__ == "__main__":
    sys.exit(main())
