"""`make new` for an aggregate: names, what each aggregate needs, and refusals."""

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.changes import CHECKOUT, ChangeError
from scripts.new import __main__ as new
from scripts.new.aggregates import Aggregate, find_aggregate
from scripts.new.entries import add_migration, add_row, add_to_list, add_to_topic, add_type
from scripts.new.reactions import Cause, choose_field, name_cause, plan_reaction, read_schemas
from scripts.new.things import plan_command, plan_event, plan_read_model
from scripts.new.words import NewError
from shared.runtime.declarations import load_declarations
from test_support.changed_files import change
from test_support.waits import HANGS_AFTER_SECONDS

RULES = "users-svc/src/users_svc/user.py"
API = "users-svc/src/users_svc/api.py"


def find(name: str, root: Path = CHECKOUT) -> Aggregate:
    return find_aggregate(root, load_declarations(root), name)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of one as a command of a user needs."""
    shutil.copytree(CHECKOUT / "users-svc", tmp_path / "users-svc")
    for path in CHECKOUT.glob("*/service.toml"):
        (tmp_path / path.parent.name).mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / path.parent.name)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "service", "package", "guard", "state", "refusals", "first"),
    [
        (
            *("user", "users", "users_svc", "require_active", "Registered"),
            {"missing": ["UNKNOWN_USER"], "gone": ["USER_DELETED"]},
            ("user-registered", "UserRegistered"),
        ),
        (
            *("item", "orders", "orders_svc.item", "require_listed", "Listed"),
            {"missing": ["UNKNOWN_ITEM"], "conflicts": ["ITEM_DELISTED"]},
            ("item-listed", "ItemListed"),
        ),
        (
            *("order", "orders", "orders_svc.order", "require_placed", "PlacedOrder"),
            {"missing": ["UNKNOWN_ORDER"]},
            ("order-placed", "OrderPlaced"),
        ),
    ],
    ids=["user", "item", "order"],
)
def test_the_names_of_an_aggregate_are_those_of_its_code(
    name: str,
    service: str,
    package: str,
    guard: str,
    state: str,
    refusals: dict[str, list[str]],
    first: tuple[str, str],
) -> None:
    found = find(name)

    assert (found.service.name, found.package) == (service, package)
    assert (found.guard, found.state, found.refusals) == (guard, state, refusals)
    assert found.types[0] == first


def test_a_command_is_in_each_file_that_has_a_part_of_it() -> None:
    texts = plan_command(CHECKOUT, find("user"), "suspend", "suspended").texts

    source, tests = "users-svc/src/users_svc", "users-svc/tests"
    changed = ("api", "commands", "contract", "events", "user", "user_profiles")
    assert {path for path in texts if path.startswith(source)} == {
        f"{source}/{name}.py" for name in changed
    }
    assert {path for path in texts if path.startswith(tests)} == {
        f"{tests}/integration/test_repeated_requests.py",
        f"{tests}/integration/test_suspend_user_api.py",
        f"{tests}/unit/test_suspend_user.py",
        f"{tests}/unit/test_user_suspended.py",
    }
    assert '"user-suspended",' in texts["users-svc/service.toml"]
    assert "| SuspendUser | `POST /v1/users/{user_id}/suspend` |" in texts["users-svc/README.md"]
    assert ", user-suspended |" in texts["docs/architecture.md"]


def test_an_event_alone_has_no_command_and_no_route() -> None:
    texts = plan_event(CHECKOUT, find("user"), "suspended").texts

    source = "users-svc/src/users_svc"
    assert not {f"{source}/api.py", f"{source}/commands.py", "users-svc/README.md"} & texts.keys()
    assert "suspend(" not in texts[RULES]
    assert "case UserSuspended():" in texts[RULES]
    assert "users-svc/tests/unit/test_user_suspended.py" in texts


def test_a_route_refuses_what_the_guard_refuses_and_callers_who_are_limited() -> None:
    text = plan_command(CHECKOUT, find("user"), "suspend", "suspended").texts[API]

    route = text[text.index('"/v1/users/{user_id}/suspend"') :].partition("@router")[0]
    assert "missing=[UNKNOWN_USER], gone=[USER_DELETED]" in route
    assert "caller.demand_all()" in route


def test_a_read_model_has_the_next_migration_which_is_listed() -> None:
    texts = plan_read_model(CHECKOUT, find("order"), "activity").texts

    folder = "orders-svc/src/orders_svc/migrations"
    number = len([*(CHECKOUT / folder).glob("*.sql")]) + 1
    migration = f"{folder}/{number:04}_order_activity.sql"
    assert "CREATE TABLE order_activity" in texts[migration]
    digest = hashlib.sha256(texts[migration].encode()).hexdigest()[:32]
    released = texts["verification/tests/unit/test_migrations.py"]
    entry = f'    "orders_svc/{number:04}_order_activity.sql": "{digest}",\n'
    assert re.search(rf'{re.escape(entry)}    "(?!orders_svc)', released)
    read_models = texts["orders-svc/src/orders_svc/read_models.py"]
    assert re.search(r"\.READ_MODEL,\s*order_activity\.READ_MODEL,?\s*\)", read_models)
    assert "from orders_svc.order import order_activity" in read_models


def test_an_event_has_the_key_of_its_topic_if_that_is_another_id() -> None:
    plan_event(CHECKOUT, find("order"), "shipped")
    texts = plan_command(CHECKOUT, find("order"), "ship", "shipped").texts

    events = texts["orders-svc/src/orders_svc/order/events.py"]
    assert "class OrderShipped:\n    order_id: UUID\n    user_id: UUID\n" in events
    for path in (
        "orders-svc/src/orders_svc/order/order.py",
        "orders-svc/tests/unit/test_ship_order.py",
        "orders-svc/tests/integration/test_ship_order_api.py",
    ):
        assert re.search(
            r"OrderShipped\(order_id=(\w+).order_id, user_id=\1.user_id\)", texts[path]
        )


@pytest.fixture
def services(checkout: Path) -> Path:
    """A checkout with as much as a reaction needs."""
    for folder in ("orders-svc", "contracts/schemas"):
        shutil.copytree(CHECKOUT / folder, checkout / folder, dirs_exist_ok=True)
    return checkout


def plan(name: str, on: str, root: Path = CHECKOUT) -> Mapping[str, str]:
    """Return the files with a reaction `refund` of an aggregate."""
    aggregate = find(name, root)
    declared = load_declarations(root)
    return plan_reaction(root, declared, aggregate, "refund", "refunded", on).texts


def test_a_reaction_is_in_each_file_that_has_a_part_of_it() -> None:
    texts = plan("item", "user-moved")

    worker = texts["orders-svc/src/orders_svc/worker.py"]
    assert "deciding(resources.items, ITEM, ITEM_COMMANDS)" in worker
    table = worker[worker.index("ITEM_COMMANDS: Commands[ItemCommand] = {") :].partition("\n}")[0]
    assert re.search(r'user_messages\.TOPIC: \{[^}]*"user-moved": to_refund_item,\n', table)
    assert 'cause(derive_id(event.user_id, "item"), RefundItem())' in worker
    assert "from orders_svc.item.commands import RefundItem" in worker
    assert "order-confirmed" not in table
    messages = texts["orders-svc/src/orders_svc/user_messages.py"]
    assert "class UserMoved:\n    user_id: UUID\n" in messages
    assert re.search(r"VIEWS = \(\(TOPIC, CODEC\),.*\(TOPIC, MOVED\)\)", messages)
    assert "| RefundItem | user-moved, of `users.v1` |" in texts["orders-svc/README.md"]
    assert "orders-svc/tests/integration/test_refund_item_reaction.py" in texts
    assert "orders-svc/src/orders_svc/item/api.py" not in texts


def test_a_topic_that_was_not_read_gets_a_view_of_its_own() -> None:
    texts = plan("user", "item-listed")

    view = texts["users-svc/src/users_svc/item_messages.py"]
    assert view.startswith('"""What users-svc reads of items.v1: only the fields that it uses."""')
    assert 'TOPIC = "items.v1"' in view
    assert 'LISTED: Codec[ItemListed] = Codec({"item-listed": ItemListed})' in view
    assert "confirmed" not in view.lower()
    worker = tomllib.loads(texts["users-svc/service.toml"])["processes"]["worker"]
    assert worker["reads"][-1] == "items.v1"
    assert worker["views"][-1] == "users_svc.item_messages"
    code = texts["users-svc/src/users_svc/worker.py"]
    table = code[code.index("USER_COMMANDS: Commands[UserCommand] = {") :]
    assert re.search(r'item_messages\.TOPIC: \{\s*"item-listed": to_refund_user', table)
    assert "from users_svc import item_messages" in code


def test_a_view_is_that_of_its_service(services: Path) -> None:
    """The aggregate has another name."""
    declared = services / "orders-svc/service.toml"
    change(declared, '"users.v1", ', "")
    change(declared, 'views = ["orders_svc.user_messages"]\n', "")
    view = "orders-svc/src/orders_svc/user_messages.py"
    (services / view).unlink()

    texts = plan("item", "user-moved", services)

    assert texts[view].startswith('"""What orders-svc reads of users.v1:')
    worker = tomllib.loads(texts["orders-svc/service.toml"])["processes"]["worker"]
    assert worker["views"] == ["orders_svc.user_messages"]


LISTED = "contracts/schemas/items.v1/item-listed.v1.json"
WORKER = "users-svc/src/users_svc/worker.py"
VIEW = "users-svc/src/users_svc/item_messages.py"


def read_items(services: Path, view: str) -> None:
    """Make users-svc read items.v1, by a view with this text."""
    declared = services / "users-svc/service.toml"
    change(declared, "reads = [", 'reads = ["items.v1", ')
    (services / VIEW).write_text(view)
    change(declared, "views = [", 'views = ["users_svc.item_messages", ')


def test_a_codec_whose_name_is_taken_gets_a_longer_one(services: Path) -> None:
    read_items(services, 'TOPIC = "items.v1"\nLISTED = 1\nVIEWS = ()\n')

    view = plan("user", "item-listed", services)[VIEW]

    assert "ITEM_LISTED: Codec[ItemListed] = Codec(" in view
    assert re.search(r"VIEWS = \(\(TOPIC, ITEM_LISTED\),?\)", view)


def test_a_topic_that_is_read_without_a_view_is_named(services: Path) -> None:
    read_items(services, 'TOPIC = "another"\n')

    with pytest.raises(NewError, match="no module in `views` of users-worker has TOPIC = 'items"):
        plan("user", "item-listed", services)


@pytest.mark.parametrize(
    ("path", "old", "new", "complaint"),
    [
        (LISTED, '"item_id",\n', "", "item-listed has no user_id and no item_id"),
        (LISTED, '"required": [', '"others": [', "item-listed has no user_id and no item_id"),
        (LISTED, '"format": "uuid",', "", "item-listed has no user_id and no item_id"),
        (
            *(WORKER, "USER_COMMANDS: Commands[UserCommand] = {\n"),
            "USER_COMMANDS: Commands[UserCommand] = {\n    item_messages.TOPIC: MORE,\n",
            "the value of item_messages.TOPIC is no dict, as it is in the skeleton",
        ),
    ],
)
def test_what_a_reaction_cannot_follow_from_is_named(
    services: Path, path: str, old: str, new: str, complaint: str
) -> None:
    change(services / path, old, new)

    with pytest.raises(NewError, match=complaint):
        plan("user", "item-listed", services)


def test_a_view_of_a_type_with_several_versions_has_an_upcast_for_each(services: Path) -> None:
    first = (services / LISTED).read_text()
    for number in (2, 10):
        (services / LISTED.replace("v1.json", f"v{number}.json")).write_text(first)

    view = plan("user", "item-listed", services)[VIEW]

    upcasts = [f"to_item_listed_{number}" for number in range(2, 11)]
    listed = view.partition('"item-listed": [')[2].partition("]")[0]
    assert [each.strip() for each in listed.split(",")] == upcasts
    assert view.index("class ItemListed") < view.index("def to_item_listed_2(")
    assert view.index("def to_item_listed_2(") < view.index("def to_item_listed_3(")


def test_a_field_that_a_version_does_not_have_is_not_chosen(services: Path) -> None:
    second = services / LISTED.replace("v1.json", "v2.json")
    second.write_text((services / LISTED).read_text().replace("item_id", "item"))

    with pytest.raises(NewError, match="item-listed has no user_id and no item_id"):
        plan("user", "item-listed", services)


def test_a_type_with_no_schema_is_named(services: Path) -> None:
    (services / LISTED).unlink()
    with pytest.raises(NewError, match=r"has no item-listed\.v1\.json: run `make contracts` first"):
        plan("user", "item-listed", services)


def test_a_service_without_a_worker_is_named(services: Path) -> None:
    (services / WORKER).unlink()

    with pytest.raises(NewError, match=r"users-svc has no process worker, or no worker\.py"):
        plan("user", "item-listed", services)


def test_a_message_with_the_id_of_the_aggregate_means_that_one() -> None:
    """Any other id leads to a stream whose id is derived from it."""
    declared = load_declarations(CHECKOUT)
    topic = declared.topics["orders.v1"]
    process = declared.service("users").processes["worker"]
    schemas = read_schemas(CHECKOUT, topic, "order-placed").values()
    assert choose_field("order-placed", schemas, ("user_id", "order_id")) == "user_id"
    assert choose_field("order-placed", schemas, ("cow_id", "order_id")) == "order_id"
    with pytest.raises(NewError, match="order-placed has no cow_id and no sheep_id"):
        choose_field("order-placed", schemas, ("cow_id", "sheep_id"))

    def find_stream(field: str) -> str:
        cause = Cause(
            type="order-placed",
            topic=topic,
            process=process,
            module="a_messages",
            constant="PLACED",
            field=field,
            version=1,
        )
        return name_cause(find("user"), cause)['derive_id(event.order_id, "thing")']

    assert find_stream("user_id") == "event.user_id"
    assert find_stream("order_id") == 'derive_id(event.order_id, "user")'


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            "thing=column name=a",
            "thing=column is none; there are: service, command, event, event-version, reaction, re",
        ),
        ("name=a", "thing= is none"),
        ("thing=command name=suspend of=user", "event= is missing: make new thing=command name="),
        ("thing=event name=paid of=user event=a", "event= is not for thing=event: make new thing="),
        ("thing=event name=paid of=cow", "'cow' is no aggregate; there are: user, item, order"),
        ("thing=event name=Paid of=user", "'Paid' cannot be a name: one word of 2 to 20 letters"),
        ("thing=event name=paid-off of=user", "'paid-off' cannot be a name"),
        ("thing=event name=../a of=user", "'../a' cannot be a name"),
        ("thing=event name=user of=user", "the name 'user' has another meaning already"),
        ("thing=command name=list event=listed of=user", "the name 'list' has another meaning"),
        ("thing=command name=pass event=passed of=user", "the name 'pass' has another meaning"),
        ("thing=event name=moved of=user", "users_svc/contract.py: UserMoved is there already"),
        ("thing=command name=move event=left of=user", "users_svc/api.py: move_user is there"),
        ("thing=command name=replace event=left of=user", "user.py: replace is there already"),
        ("thing=command name=ship event=placed of=order", "OrderPlaced is there already"),
        ("thing=command name=placed event=laid of=order", "PlacedOrder is there already"),
        ("thing=event name=command of=user", "the name 'command' has another meaning"),
        ("thing=event name=profile of=user", "UserProfile is there already"),
        ("thing=command name=moves event=gone of=user", "there is /v1/users/{user_id}/moves"),
        ("thing=read-model name=profiles of=user", "user_profiles is there already"),
        ("thing=reaction name=a event=b of=user", "on= is missing: make new thing=reaction name="),
        (
            "thing=reaction name=aa event=bb on=paid of=user",
            "no topic has an event 'paid'; there are: user-re",
        ),
        (
            "thing=reaction name=aa event=bb on=user-moved of=user",
            "user-moved is an event of users-svc itself",
        ),
        (
            "thing=reaction name=aa event=bb on=order-placed of=user",
            "users-svc reads order-placed already: add to its table in worker.py",
        ),
        ("thing=reaction name=move event=left on=item-listed of=user", "MoveUser is there already"),
        ("thing=event-version name=gone", "'gone' is no event; there are: user-registered, user-"),
        ("thing=service name=goods singular=item", "has an aggregate item: choose another"),
    ],
)
def test_what_cannot_be_made_is_one_line(arguments: str, complaint: str) -> None:
    given = dict(each.split("=", 1) for each in arguments.split())

    with pytest.raises(ChangeError) as refused:
        new.plan(given.pop("thing", ""), given)

    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_there_is_not_written_over(checkout: Path) -> None:
    path = checkout / "users-svc/tests/unit/test_user_suspended.py"
    path.write_text("")

    with pytest.raises(NewError, match=r"test_user_suspended\.py exists"):
        plan_event(checkout, find("user", checkout), "suspended")


def test_code_of_another_form_is_named(checkout: Path) -> None:
    change(checkout / "users-svc/src/users_svc/events.py", "CODEC: Codec[UserEvent]", "CODEC")
    with pytest.raises(NewError, match=r"users_svc/events\.py has no `CODEC"):
        find("user", checkout)

    change(checkout / RULES, "require_active", "check")
    with pytest.raises(NewError, match=r"user\.py has no `decide` that calls"):
        find("user", checkout)

    change(checkout / RULES, "USER: Decider[UserCommand, User, UserEvent]", "USER")
    with pytest.raises(NewError, match="'user' is no aggregate; there are: none"):
        find("user", checkout)


def test_an_event_type_that_is_there_is_refused_whatever_its_class(checkout: Path) -> None:
    for module in ("events", "contract"):
        path = checkout / f"users-svc/src/users_svc/{module}.py"
        change(path, '"user-moved": UserMoved', '"user-left": UserMoved')

    with pytest.raises(NewError, match=r"users\.v1 has user-left already"):
        plan_event(checkout, find("user", checkout), "left")


def test_versions_of_events_stay_as_they_are(checkout: Path) -> None:
    """The second argument of a codec is a dict, too."""
    path = checkout / "users-svc/src/users_svc/events.py"
    types, _, _ = path.read_text().rpartition("CODEC:")[2].partition("\n    }")
    before = path.read_text().rpartition("CODEC:")[0]
    path.write_text(f'{before}CODEC:{types}\n    }},\n    upcasts={{"user-moved": (a, b)}},\n)\n')

    text = plan_event(checkout, find("user", checkout), "left").texts[
        "users-svc/src/users_svc/events.py"
    ]

    assert 'upcasts={"user-moved": (a, b)},' in text
    assert '"user-left": UserLeft' in text


def test_a_comment_at_the_end_is_not_moved_to_another_entry(checkout: Path) -> None:
    path = checkout / "users-svc/src/users_svc/events.py"
    before, codec, after = path.read_text().rpartition("CODEC:")
    path.write_text(before + codec + after.replace(",\n    }", ",  # for good\n    }", 1))

    with pytest.raises(NewError, match="CODEC ends with a comment"):
        plan_event(checkout, find("user", checkout), "left")


def test_texts_and_codes_are_those_of_the_service(checkout: Path) -> None:
    change(checkout / RULES, 'UNKNOWN_USER = "unknown-user"', 'UNKNOWN_USER = "no-user"')
    change(checkout / RULES, "        case Registered():\n            return user\n", ADULTS)
    change(checkout / "users-svc/src/users_svc/events.py", CODEC_BEGINS, CODEC_BEGINS_BY_NAME)

    texts = plan_command(checkout, find("user", checkout), "suspend", "suspended").texts

    test = texts["users-svc/tests/unit/test_suspend_user.py"]
    assert 'then_no("no-user")' in test
    assert 'CODEC.decode("user-registered", ' in test
    assert "gone=[USER_DELETED], conflicts=[IS_MINOR]" in texts[API]
    assert "from users_svc.user import IS_MINOR" in texts[API]


ADULTS = """\
        case Registered():
            if user.gender == "":
                raise Refused(IS_MINOR, "the user is a minor")
            if user.gender == " ":
                raise Refused(IS_MINOR, "the user is a minor")
            return user
"""
CODEC_BEGINS = 'CODEC: Codec[UserEvent] = Codec(\n    {\n        "user-registered": UserRegistered,'
CODEC_BEGINS_BY_NAME = """\
REGISTERED = "user-registered"
CODEC: Codec[UserEvent] = Codec(
    {
        REGISTERED: UserRegistered,"""


def test_the_topic_and_the_code_can_have_other_names(checkout: Path) -> None:
    for path in checkout.glob("*/service.toml"):
        path.write_text(path.read_text().replace("users.v1", "users.v2"))
    for module in (RULES, API):
        change(checkout / module, "UNKNOWN_USER", "NO_USER")

    texts = plan_read_model(checkout, find("user", checkout), "activity").texts

    assert "raise NotFound(NO_USER," in texts[API]
    assert "Apply messages of users.v2." in texts["users-svc/src/users_svc/user_activity.py"]


def test_the_guard_is_the_one_that_most_commands_have(checkout: Path) -> None:
    text = (checkout / RULES).read_text()
    first = text.index("(command, require_active(user))")
    text = text[:first] + text[first:].replace("require_active", "require_any", 1)
    (checkout / RULES).write_text(
        f"{text}\ndef require_any(user: User) -> User:\n    return user\n"
    )

    assert find("user", checkout).guard == "require_active"


def test_a_name_can_have_a_digit(checkout: Path) -> None:
    change(checkout / RULES, "USER: Decider", "B2B: Decider")

    assert find("user", checkout).singular == "user"


@pytest.mark.parametrize(
    ("path", "old", "new", "complaint"),
    [
        (RULES, "raise NotFound(", "raise LookupError(", "raises no NotFound"),
        (
            *("users-svc/tests/integration/test_repeated_requests.py", 'route="POST', 'route="PUT'),
            r"has no function that returns WriteRequest\(route=\"POST /v1/users\", \.\.\.\)",
        ),
    ],
    ids=["no code for an unknown user", "no first request"],
)
def test_what_is_needed_and_not_found_is_named(
    checkout: Path, path: str, old: str, new: str, complaint: str
) -> None:
    change(checkout / path, old, new)

    with pytest.raises(NewError, match=complaint):
        find("user", checkout)


def test_a_topic_that_is_no_word_is_refused(checkout: Path) -> None:
    for path in checkout.glob("*/service.toml"):
        path.write_text(path.read_text().replace("users.v1", "user-facts.v1"))

    with pytest.raises(NewError, match=r"user-facts\.v1: a topic that is no word"):
        find("user", checkout)


def test_words_are_replaced_at_once(checkout: Path) -> None:
    """Also where a new name is a word of the skeleton, or the state has such a name."""
    for path in (RULES, API, "users-svc/src/users_svc/schemas.py"):
        text = (checkout / path).read_text()
        text = re.sub(r"\bRegistered\b", "Approved", text)
        (checkout / path).write_text(text.replace("require_active", "require_approved"))

    texts = plan_command(checkout, find("user", checkout), "approved", "granted").texts

    assert "def approved(user: Approved)" in texts[RULES]
    assert "return approved(require_approved(user))" in texts[RULES]
    assert "class ApprovedUser:" in texts["users-svc/src/users_svc/commands.py"]


@pytest.mark.parametrize("path", [RULES, API, "users-svc/src/users_svc/events.py"])
def test_a_module_that_is_no_python_is_one_line(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    with (checkout / path).open("a") as file:
        file.write("def (")
    monkeypatch.setattr(new, "CHECKOUT", checkout)

    with pytest.raises(NewError, match="a module of the service is no Python") as refused:
        new.plan("command", {"name": "suspend", "event": "suspended", "of": "user"})
    assert "\n" not in str(refused.value)


def test_two_aggregates_of_one_name_are_both_named(checkout: Path) -> None:
    item = checkout / "orders-svc/src/orders_svc/item"
    item.mkdir(parents=True)
    shutil.copy(checkout / RULES, item)

    with pytest.raises(
        NewError, match=r"users_svc/user\.py and .*item/user\.py have the same name"
    ):
        find("user", checkout)


def test_what_a_copy_has_no_longer_is_left_out(checkout: Path) -> None:
    """Documents, and the test of repeated requests."""
    (checkout / "users-svc/README.md").unlink()
    (checkout / "users-svc/tests/integration/test_repeated_requests.py").unlink()

    texts = plan_command(checkout, find("user", checkout), "suspend", "suspended").texts

    assert not {"docs/architecture.md", "users-svc/README.md"} & texts.keys()
    assert not [path for path in texts if "repeated" in path]


@pytest.mark.parametrize("types", ['["a"]', '["a",]', '[\n    "a",\n]', '[\n    "a"\n]', "[ ]"])
def test_a_type_is_added_to_those_of_its_topic_only(types: str) -> None:
    other = '[topics."b.v1"]\ntypes = ["b"]\n'
    text = f'{other}\n[topics."a.v1"]\npartitions = 4\ntypes = {types}\n\n[scopes]\ntypes = ["c"]\n'

    added = add_type(text, "a.v1", "d")

    wanted = tomllib.loads(text)
    wanted["topics"]["a.v1"]["types"].append("d")
    assert tomllib.loads(added) == wanted
    assert added.startswith(other)


def test_a_list_is_added_where_there_is_none() -> None:
    text = '[processes.a]\nport = 1\n\n[processes.b]\nport = 2\nreads = ["c"]\n'

    added = add_to_list(text, ("processes", "b"), "views", "d")

    wanted = tomllib.loads(text)
    wanted["processes"]["b"]["views"] = ["d"]
    assert tomllib.loads(added) == wanted
    assert add_to_list(text, ("processes", "a"), "views", "d").startswith(
        '[processes.a]\nport = 1\nviews = ["d"]\n\n'
    )


@pytest.mark.parametrize(
    "table",
    ['[topics."e.v1"]\n', 'types = [\n    "a", # [b]\n]\n', "types = ['a' # b\n]\n"],
    ids=["no table", "a bracket in a comment", "a comment at the end"],
)
def test_types_of_another_form_are_named(table: str) -> None:
    start = "" if table.startswith("[") else '[topics."a.v1"]\n'
    text = f'{start}{table}\n[topics."b.v1"]\ntypes = []\n'

    with pytest.raises(NewError, match=r"`types` of a\.v1 has another form"):
        add_type(text, "a.v1", "d")


def test_a_row_goes_below_the_last_of_the_commands() -> None:
    table = "| command | from |\n| --- | --- |\n| A | b |\n"
    row = "| D | `POST /e` | f, in `a.v1` |\n"

    added = add_row(f"{table}\n| c |\n| - |\n", "D", "`POST /e`", "f", "a.v1")

    assert added == f"{table}{row}\n| c |\n| - |\n"
    assert add_row("no table\n", "D", "`POST /e`", "f", "a.v1") == "no table\n"


def test_a_row_has_no_topic_where_the_head_of_the_table_has_it() -> None:
    table = "| command | events, in `a.v1` |\n| --- | --- |\n"

    assert add_row(table, "D", "`POST /e`", "f", "a.v1") == f"{table}| D | `POST /e` | f |\n"


def test_a_migration_is_listed_after_those_of_its_package() -> None:
    rows = ['    "a_svc/1.sql": "x",', '    "a_svc/2.sql": "y",', '    "b_svc/1.sql": "z",']
    text = "\n".join(["RELEASED = {", *rows, "}", ""])

    added = add_migration(text, "a_svc/3.sql", "new")

    assert added == text.replace('"y",\n', '"y",\n    "a_svc/3.sql": "new",\n')
    assert add_migration(text, "c_svc/1.sql", "new") == text


def test_a_type_is_added_to_the_row_of_its_topic() -> None:
    rows = "| `a.v1` | a | b, c |\n| `aa.v1` | a | b |\n"

    assert add_to_topic(rows, "a.v1", "d") == rows.replace("b, c |", "b, c, d |")


def run_new(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scripts.new", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )


def test_a_dry_run_shows_each_file_and_writes_none() -> None:
    before = (CHECKOUT / RULES).read_text()

    ended = run_new("--thing=event", "--name=suspended", "--of=user", "--dry-run")

    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    assert f"  ~ {RULES}" in lines
    assert "  + users-svc/tests/unit/test_user_suspended.py" in lines
    assert "  then checking types" in lines
    assert lines[-1] == "UserSuspended: nothing was changed; the last steps write more files"
    assert (CHECKOUT / RULES).read_text() == before


def test_without_a_thing_they_are_listed() -> None:
    ended = run_new()

    assert ended.returncode == 0
    assert [line.split()[0] for line in ended.stdout.splitlines()] == list(new.THINGS)
    assert all("make new thing=" in line for line in ended.stdout.splitlines())
    assert run_new("--name=a").returncode == 1
