"""docs/platforms.md names the packages that a platform has to compile, as uv.lock implies them."""

import re
import tomllib
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[3]

PLATFORMS = {
    "Linux, x86-64": r"manylinux\w*x86_64",
    "Linux, arm64": r"manylinux\w*aarch64",
    "macOS, arm64": r"macosx\w*(arm64|universal2)",
    "macOS, x86-64": r"macosx\w*(x86_64|universal2)",
}
ANY = r"-any\.whl$"


def find_without_wheel(packages: list[dict[str, Any]], platform: str) -> set[str]:
    """Packages that have wheels, and none for this platform."""
    return {
        package["name"]
        for package in packages
        if (wheels := package.get("wheels"))
        and not any(re.search(f"{platform}|{ANY}", wheel["url"]) for wheel in wheels)
    }


def test_the_packages_without_a_wheel_are_named() -> None:
    packages = tomllib.loads((CHECKOUT / "uv.lock").read_text())["package"]
    page = (CHECKOUT / "docs/platforms.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \| .+ \|$", page, re.MULTILINE)

    for platform, pattern in PLATFORMS.items():
        listed = {package for package, where in rows if platform in where}
        assert listed == find_without_wheel(packages, pattern), platform


def test_a_package_without_a_wheel_is_found() -> None:
    """The negative control."""
    packages: list[dict[str, Any]] = [
        {"name": "everywhere", "wheels": [{"url": "https://x/everywhere-1-py3-none-any.whl"}]},
        {
            "name": "linux",
            "wheels": [{"url": "https://x/l-1-cp311-cp311-manylinux_2_17_x86_64.whl"}],
        },
        {"name": "a member of the workspace"},
    ]

    assert find_without_wheel(packages, PLATFORMS["Linux, x86-64"]) == set()
    assert find_without_wheel(packages, PLATFORMS["macOS, arm64"]) == {"linux"}
