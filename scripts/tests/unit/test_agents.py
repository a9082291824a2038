"""AGENTS.md has the sections that follow from the code, as they follow from it."""

import re

import pytest

from scripts.agents import PAGE, SECTIONS, describe_rules, fill
from scripts.changes import ChangeError

HANDWRITTEN = "# Agents\n\nOurs.\n\n<!-- generated: codes -->\nold\n<!-- end -->\n\nOurs, too.\n"


@pytest.mark.skipif(not PAGE.exists(), reason="a project can remove the page")
def test_the_page_has_each_section_as_it_follows_from_the_code() -> None:
    """`make generate` brings it up to date."""
    page = PAGE.read_text()

    assert re.findall(r"^<!-- generated: (\S+) -->$", page, re.MULTILINE) == [*SECTIONS]
    assert fill(page) == page


def test_what_is_around_a_section_stays() -> None:
    filled = fill(HANDWRITTEN)

    before, _, after = HANDWRITTEN.partition("old\n")
    assert filled == f"{before}\n{SECTIONS['codes']()}\n{after}"
    assert "unknown-user" in filled
    assert fill(filled) == filled


def test_an_unknown_section_is_refused() -> None:
    with pytest.raises(ChangeError, match=r"a section 'code': name one of verbs, rules, codes"):
        fill(HANDWRITTEN.replace("codes", "code"))


@pytest.mark.parametrize("end", [0, 1, 2], ids=["of the first", "of another", "of the last"])
def test_a_section_without_an_end_is_refused(end: int) -> None:
    """Otherwise, what stands between two sections would be lost."""
    parts = (HANDWRITTEN * 3).split("<!-- end -->")
    without = "<!-- end -->".join(parts[: end + 1]) + "<!-- end -->".join(parts[end + 1 :])

    with pytest.raises(ChangeError, match="a section without an end"):
        fill(without)


def test_rules_are_described() -> None:
    rules = [
        {"name": "Rooms", "type": "layers", "layers": ["shop.api | shop.worker", "shop.events"]},
        {"name": "Alone", "type": "independence", "modules": ["one", "other"]},
        {
            "name": "Pure",
            "type": "forbidden",
            "source_modules": ["shop.events"],
            "forbidden_modules": ["asyncpg"],
            "ignore_imports": ["shop.events -> asyncpg.types"],
        },
    ]

    assert list(describe_rules("shop-svc", rules)) == [
        "### shop-svc",
        "Rooms:",
        "```text\napi | worker\nevents\n```",
        "- Alone: `one`, `other`.\n"
        "- Pure: `shop.events` must not import `asyncpg`,"
        " but for `shop.events -> asyncpg.types`.",
    ]


def test_layers_have_no_name_of_their_package_and_all_of_their_own() -> None:
    layers = ["order.preorder.api | order.order.api", "(order.events)"]
    rule = {"name": "Rooms", "type": "layers", "layers": layers, "containers": ["shop", "mall"]}

    assert list(describe_rules("shop-svc", [rule]))[1:3] == [
        "Rooms, in `shop`, `mall`:",
        "```text\npreorder.api | order.api\n(events)\n```",
    ]


def test_layers_of_several_packages_keep_their_names() -> None:
    rule = {"name": "Stack", "type": "layers", "layers": ["containers", "local_stack"]}

    assert "```text\ncontainers\nlocal_stack\n```" in describe_rules("infra", [rule])


def test_a_rule_of_another_type_has_its_name_and_type() -> None:
    rule = {"name": "Free", "type": "acyclic_siblings", "ancestors": ["shop"]}

    assert "- Free: `acyclic_siblings`." in describe_rules("shop-svc", [rule])
