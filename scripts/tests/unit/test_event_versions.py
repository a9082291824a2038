"""`make new thing=event-version`: where upcasts are entered, and what is refused."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orders_svc.order.events import CODEC
from scripts.changes import CHECKOUT
from scripts.new.event_versions import Module, Version, plan_event_version
from scripts.new.words import NewError
from shared.runtime.declarations import load_declarations
from test_support.changed_files import change

USERS = "users-svc/src/users_svc"
ORDERS = "orders-svc/src/orders_svc/order"
VIEW = f"{USERS}/order_messages.py"
PUBLIC = (f"{ORDERS}/events.py", f"{ORDERS}/contract.py")
RELEASED = "contracts/released.json"

NEWEST = CODEC.get_version("order-rejected")
NEXT = f"to_order_rejected_{NEWEST + 1}"

TEXT = '''"""Events."""

from shared.eventsourcing.codec import Codec

MOVED = "user-moved"


class UserLeft:
    pass


class UserMoved:
    pass


def change() -> None:
    """Before the codec, and no part of the event."""


CODEC = Codec({"user-left": UserLeft, MOVED: UserMoved})
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of one as an event needs."""
    for path in CHECKOUT.glob("*/service.toml"):
        shutil.copytree(path.parent, tmp_path / path.parent.name)
    (tmp_path / "contracts").mkdir()
    release(tmp_path, *range(1, NEWEST + 1))
    return tmp_path


def release(root: Path, *versions: int) -> None:
    """Make these versions of order-rejected a promise, and nothing else."""
    types: dict[str, Any] = {"order-rejected": {str(version): {} for version in versions}}
    (root / RELEASED).write_text(json.dumps({"orders.v1": {"types": types}}))


def plan(type_: str, root: Path) -> Mapping[str, str]:
    """Return the files with the next version of an event."""
    return plan_event_version(root, load_declarations(root), type_).texts


def define(text: str, number: int, type_: str = "user-moved") -> str:
    return Module(path="events.py", text=text).define_upcast(Version(type=type_, number=number))


class Written(tuple[dict[str, Any], ...]):
    """Stands for a codec: the dicts of which it is made."""

    def __new__(cls, *dicts: dict[str, Any], upcasts: dict[str, Any] | None = None) -> "Written":
        return super().__new__(cls, dicts if upcasts is None else (*dicts, upcasts))


def run(text: str) -> dict[str, Any]:
    """Return the names of a module."""
    names: dict[str, Any] = {"Codec": Written, "Any": Any}
    exec(text.replace("from shared.eventsourcing.codec import Codec", ""), names)
    return names


def test_an_event_gets_upcasts_one_after_the_other() -> None:
    text = define(define(TEXT, 2), 3)

    names = run(text)
    _, upcasts = names["CODEC"]
    assert upcasts == {"user-moved": [names["to_user_moved_2"], names["to_user_moved_3"]]}
    assert names["to_user_moved_2"]({"user_id": 1}) == {"user_id": 1}
    places = [
        text.index(each)
        for each in ("class UserMoved", "def to_user_moved_2", "def to_user_moved_3", "def change")
    ]
    assert places == sorted(places)
    assert text.count("from typing import Any") == 1
    assert re.search(r"\{MOVED: \[to_user_moved_2,\s*to_user_moved_3\]\}", text)


def test_the_upcasts_of_others_stay() -> None:
    names = run(define(define(TEXT, 2), 2, "user-left"))

    _, upcasts = names["CODEC"]
    assert upcasts == {
        "user-moved": [names["to_user_moved_2"]],
        "user-left": [names["to_user_left_2"]],
    }


def test_the_two_dicts_of_a_codec_can_name_the_event_in_two_ways() -> None:
    text = define(define(TEXT, 2).replace("{MOVED: [", '{"user-moved": ['), 3)

    names = run(text)
    upcasts = [names["to_user_moved_2"], names["to_user_moved_3"]]
    assert names["CODEC"][1] == {"user-moved": upcasts}


def test_only_the_codec_of_the_event_gets_the_upcast() -> None:
    text = f'{TEXT}\nGONE = Codec({{"user-gone": UserMoved}})\n'

    assert 'GONE = Codec({"user-gone": UserMoved})\n' in define(text, 2)


def test_comments_stay_where_they_are() -> None:
    text = define(TEXT.replace("pass\n\n\ndef", "pass  # in seconds\n\n\ndef"), 2)
    text = text.replace("return fields\n", "return fields  # as they were\n")

    text = define(text, 3)

    assert re.search(r"    pass  # in seconds\s+def to_user_moved_2", text)
    assert re.search(r"    return fields  # as they were\s+def to_user_moved_3", text)


@pytest.mark.parametrize(
    "codec",
    [
        "Codec[object]({'user-left': UserLeft, MOVED: UserMoved})",
        "Codec({'user-é': UserLeft, **OTHERS, MOVED: UserMoved}, {})",
        "Codec({MOVED: UserMoved}, upcasts={'user-moved': []})",
        "Codec(\n    {\n        MOVED: UserMoved,  # as it is\n    }\n)",
    ],
)
def test_other_forms_of_a_codec_are_read(codec: str) -> None:
    text = define(TEXT.replace('Codec({"user-left": UserLeft, MOVED: UserMoved})', codec), 2)

    names = run(f"OTHERS = {{}}\n{text}")
    assert names["CODEC"][1] == {"user-moved": [names["to_user_moved_2"]]}


def test_a_class_from_elsewhere_has_its_upcast_above_the_codec() -> None:
    text = define(TEXT.replace("class UserMoved:\n    pass", "from forms import UserMoved"), 2)

    assert text.index("def change()") < text.index("def to_user_moved_2(") < text.index("CODEC = ")


def test_a_type_with_other_letters_has_a_function() -> None:
    assert Version(type="user.moved-away", number=2).upcast == "to_user_moved_away_2"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("MOVED: UserMoved})", "MOVED: UserMoved}, UPCASTS)", "has arguments that are no dicts"),
        ("Codec({", "Codec(TYPES, {", "has arguments that are no dicts"),
        ("MOVED: UserMoved})", "MOVED: UserMoved}, {}, {})", "or more than two"),
        ("MOVED: UserMoved})", "MOVED: UserMoved}, {MOVED: ALL})", "of user-moved are no list"),
        ("MOVED: UserMoved})", "MOVED: UserMoved}, {MOVED: [a]})", "does not read version 1"),
        ("MOVED: UserMoved})", "UNKNOWN: UserMoved})", "UNKNOWN is neither a text nor the name"),
        (
            *("UserMoved})", "UserMoved}, {MOVED: [  # oldest first\n]})"),
            "a list of entries ends with a comment",
        ),
        (
            *("MOVED: UserMoved})\n", "MOVED: UserMoved})\nB = Codec({MOVED: C}, {MOVED: [a]})\n"),
            "does not read version 1",
        ),
        ("def change", "def to_user_moved_2", "to_user_moved_2 is there already"),
    ],
)
def test_a_module_of_another_form_is_named(old: str, new: str, complaint: str) -> None:
    assert old in TEXT

    with pytest.raises(NewError, match=complaint) as refused:
        define(TEXT.replace(old, new), 2)

    assert str(refused.value).startswith("events.py: ")


def test_a_module_that_does_not_mention_the_event_can_have_any_form() -> None:
    assert Module(path="events.py", text="A = Codec(TYPES)").read_codecs("user-moved") == []


def test_who_reads_the_event_reads_its_next_version(checkout: Path) -> None:
    texts = plan("order-rejected", checkout)

    assert texts.keys() >= {*PUBLIC, VIEW}
    assert all(re.search(rf'"order-rejected": \[.*{NEXT},?\s*\]', each) for each in texts.values())
    events, contract, view = (texts[path] for path in (*PUBLIC, VIEW))
    assert f"from orders_svc.order.events import {NEXT}" in contract
    assert f"def {NEXT}(" not in contract
    assert f"version {NEWEST + 1}: none that is read here has changed" in view
    assert f"version {NEWEST + 1}.\n" in events.replace('"""', "\n")


def test_an_event_whose_public_form_is_another_class_stays_as_it_is_outside(checkout: Path) -> None:
    assert plan("user-registered", checkout).keys() == {f"{USERS}/events.py"}


def test_an_event_that_is_not_public_has_no_reader_elsewhere(checkout: Path) -> None:
    change(checkout / ORDERS / "contract.py", '        "order-rejected": OrderRejected,\n', "")
    change(checkout / "orders-svc/service.toml", '"order-rejected", ', "")

    assert plan("order-rejected", checkout).keys() == {f"{ORDERS}/events.py"}


def test_a_class_can_be_named_by_its_module(checkout: Path) -> None:
    contract = checkout / ORDERS / "contract.py"
    change(contract, '"order-rejected": OrderRejected', '"order-rejected": events.OrderRejected')

    assert plan("order-rejected", checkout).keys() >= {*PUBLIC}


def test_all_views_of_a_service_get_the_upcast(checkout: Path) -> None:
    views = "users-svc/service.toml"
    change(checkout / views, "views = [", 'views = ["users_svc.more_messages", ')
    more = f"{USERS}/more_messages.py"
    shutil.copy(checkout / VIEW, checkout / more)

    assert plan("order-rejected", checkout).keys() >= {VIEW, more}


def test_a_view_that_is_missing_is_named(checkout: Path) -> None:
    (checkout / VIEW).unlink()

    with pytest.raises(NewError, match=r"order_messages\.py, which is in users-svc/service"):
        plan("order-rejected", checkout)


def test_a_type_in_two_topics_is_named(checkout: Path) -> None:
    change(
        checkout / "orders-svc/src/orders_svc/item/events.py", '"item-delisted"', '"order-rejected"'
    )

    with pytest.raises(NewError, match=r"item/events\.py and .*order/events\.py: their readers"):
        plan("order-rejected", checkout)


def test_a_contract_without_its_event_is_named(checkout: Path) -> None:
    change(checkout / ORDERS / "contract.py", '        "order-rejected": OrderRejected,\n', "")

    with pytest.raises(NewError, match=r"contract\.py: no codec has 'order-rejected', which is in"):
        plan("order-rejected", checkout)


def test_a_public_class_from_elsewhere_is_named(checkout: Path) -> None:
    contract = checkout / ORDERS / "contract.py"
    change(contract, "from orders_svc.order.events import", "from orders_svc.order.others import")

    with pytest.raises(NewError, match=r"contract\.py: OrderRejected is neither from orders_svc"):
        plan("order-rejected", checkout)


def test_a_version_that_is_no_promise_can_still_change(checkout: Path) -> None:
    complaint = f"version {NEWEST} of order-rejected is not released, so it can still change"
    for released in ("{}", '{"orders.v1": {"types": {}}}'):
        (checkout / RELEASED).write_text(released)
        with pytest.raises(NewError, match=complaint):
            plan("order-rejected", checkout)

    (checkout / RELEASED).unlink()
    with pytest.raises(NewError, match=complaint):
        plan("order-rejected", checkout)


def test_the_next_version_is_counted_from_those_that_are_read(checkout: Path) -> None:
    for path, text in plan("order-rejected", checkout).items():
        (checkout / path).write_text(text)
    with pytest.raises(NewError, match=f"version {NEWEST + 1} of order-rejected is not released"):
        plan("order-rejected", checkout)

    release(checkout, NEWEST + 1)
    texts = plan("order-rejected", checkout)
    both = re.compile(rf"{NEXT},\s*to_order_rejected_{NEWEST + 2}\b")
    assert all(both.search(text) for text in texts.values())


def test_what_is_to_change_is_listed(checkout: Path) -> None:
    addition = plan_event_version(checkout, load_declarations(checkout), "order-rejected")

    for path in (
        *(f"{ORDERS}/events.py", VIEW),
        f"orders-svc/tests/unit/samples/order-rejected.v{NEWEST + 1}.json",
        f"contracts/samples/orders.v1/order-rejected.v{NEWEST + 1}.json",
    ):
        assert f"  {path}   " in addition.next_steps
    commands = [" ".join(command) for _, command in addition.steps]
    for folder in ("orders-svc", "users-svc"):
        assert any(each.endswith(f"mypy --no-error-summary {folder}") for each in commands)
    assert len(commands) == len({*commands})
    assert commands[-1].endswith("contracts check")
