"""Each process of a stack in containers has its secrets, and no other's."""

import json
from pathlib import Path

from containers import access, secrets
from local_stack import issuer
from local_stack.postgres import ROLES
from test_support.first_services import is_added, leave_out_added


def contents(root: Path) -> dict[str, dict[str, str]]:
    return {
        folder.name: {file.name: file.read_text() for file in folder.iterdir()}
        for folder in root.iterdir()
    }


def test_existing_secrets_are_kept(tmp_path: Path) -> None:
    secrets.write(tmp_path)
    before = contents(tmp_path)

    secrets.write(tmp_path)

    assert contents(tmp_path) == before


DATABASE, KAFKA = {"database_url"}, {"kafka_password", "authority.pem"}
KEYS, STORES = {"jwks.json"}, {"users_store_url", "orders_store_url"}


def test_each_process_has_the_files_that_follow_from_its_declaration(tmp_path: Path) -> None:
    secrets.write(tmp_path)
    folders = contents(tmp_path)
    del folders["keys"]

    assert {
        name: leave_out_added(files) for name, files in folders.items() if not is_added(name)
    } == {
        "users-migrate": DATABASE,
        "users-api": DATABASE | KEYS | {"personal_data_key"},
        "users-relay": DATABASE | KAFKA,
        "users-worker": DATABASE | KAFKA,
        "users-tool": DATABASE | KAFKA,
        "orders-migrate": DATABASE,
        "orders-api": DATABASE | KEYS,
        "orders-relay": DATABASE | KAFKA,
        "orders-worker": DATABASE | KAFKA,
        "orders-tool": DATABASE | KAFKA,
        "analytics-migrate": DATABASE,
        "analytics-api": DATABASE | KEYS | KAFKA,
        "analytics-reconciler": DATABASE | STORES,
        "analytics-job": DATABASE | KAFKA,
        "analytics-tool": DATABASE | KAFKA | STORES,
        "analytics-faust": KEYS | KAFKA,
        "postgres": {"password"},
        "load": {"addresses.json", "issuer-key.pem"},
        "topics": KAFKA,
        "visitor": KAFKA,
        "kafka": {"authority.pem", "broker.pem"},
        "administrator": {"authority.pem", "admin.pem"},
    }
    addresses = json.loads(folders["load"]["addresses.json"])
    assert {name: addresses[name] for name in leave_out_added(addresses)} == {
        name: f"http://{name}:8000" for name in ("users-api", "orders-api", "analytics-api")
    }


def test_no_process_has_a_password_of_another_role(tmp_path: Path) -> None:
    secrets.write(tmp_path)
    folders = contents(tmp_path)
    passwords = json.loads(folders.pop("keys")["secrets.json"])

    seen = {
        process: {role for role in ROLES if passwords[role] in "".join(files.values())}
        for process, files in folders.items()
    }

    assert seen["postgres"] == {"postgres"}
    assert seen["users-relay"] == seen["users-worker"] == seen["users-api"] == {"users"}
    assert seen["users-migrate"] == seen["users-tool"] == {"users_owner"}
    assert seen["analytics-reconciler"] == {"analytics", "reconciler"}
    assert seen["analytics-tool"] == {"analytics_owner", "reconciler"}
    assert all(len(roles) <= 2 for roles in seen.values())


def test_only_the_api_of_users_can_open_personal_data(tmp_path: Path) -> None:
    secrets.write(tmp_path)
    folders = contents(tmp_path)
    key = json.loads(folders.pop("keys")["secrets.json"])["personal-data-key"]

    assert [name for name, files in folders.items() if key in "".join(files.values())] == [
        "users-api"
    ]


def test_no_process_has_the_kafka_password_of_another(tmp_path: Path) -> None:
    secrets.write(tmp_path)
    folders = contents(tmp_path)
    passwords = json.loads(folders.pop("keys")["secrets.json"])

    for user in access.rights():
        holders = [name for name, files in folders.items() if passwords[user] in files.values()]
        assert holders == [user]


def test_only_brokers_and_the_administrator_have_certificates_of_their_own(tmp_path: Path) -> None:
    secrets.write(tmp_path)
    folders = contents(tmp_path)
    del folders["keys"], folders["load"]

    holders = {name for name, files in folders.items() if "PRIVATE KEY" in "".join(files.values())}
    assert holders == {"kafka", "administrator"}


def test_only_the_issuer_and_load_which_plays_many_callers_can_sign(tmp_path: Path) -> None:
    secrets.write(tmp_path)
    folders = contents(tmp_path)
    kept, load = folders.pop("keys"), folders.pop("load")

    private = kept[issuer.private_key(secrets.keys(tmp_path)).name]
    assert "PRIVATE KEY" in private
    assert private in load.values()
    assert private not in "".join(text for files in folders.values() for text in files.values())
    assert folders["orders-api"]["jwks.json"] == kept["issuer-jwks.json"]
