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

from shared.runtime.declarations import load_declarations

CHECKOUT = pathlib.Path(__file__).resolve().parents[1]


def main() -> int:
    """0 if every import is allowed, 1 if not; import-linter prints which one is forbidden."""
    services = [service.package for service in load_declarations().services]
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder, "importlinter.toml")
        rules.write_text(rules_between(services, stack_packages()))
        configs = [rules, *sorted(filter(has_rules, CHECKOUT.glob("*/pyproject.toml")))]
        failed = [config for config in configs if lint_imports(str(config), no_logo=True)]
    return 1 if failed else 0


def stack_packages() -> list[str]:
    infra = tomllib.loads((CHECKOUT / "infra/pyproject.toml").read_text())
    return list(infra["tool"]["uv"]["build-backend"]["module-name"])


def has_rules(path: pathlib.Path) -> bool:
    return "importlinter" in tomllib.loads(path.read_text()).get("tool", {})


def rules_between(services: Sequence[str], stack: Sequence[str]) -> str:
    """The configuration of import-linter for the rules between packages."""
    packages = [
        "shared",
        *services,
        *stack,
        "lessons",
    ]
    rules = [
        f"[tool.importlinter]\nroot_packages = {json.dumps(packages)}\n",
        rule("No service knows another one", "independence", modules=services),
        forbid("What is shared knows no service", ["shared"], [*services, *stack]),
        forbid("The stack runs services, it does not import them", stack, services),
        forbid("Nothing needs a lesson", ["shared", *services, *stack], ["lessons"]),
    ]
    return "\n".join(rules)


def forbid(name: str, sources: Sequence[str], targets: Sequence[str]) -> str:
    return rule(name, "forbidden", source_modules=sources, forbidden_modules=targets)


def rule(name: str, kind: str, **modules: Sequence[str]) -> str:
    lines = [f"{key} = {json.dumps(list(value))}\n" for key, value in modules.items()]
    return f'[[tool.importlinter.contracts]]\nname = "{name}"\ntype = "{kind}"\n{"".join(lines)}'


if __name__ == "__main__":
    sys.exit(main())
