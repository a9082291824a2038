"""Each process of a stack in containers has its secrets, and no other's."""

import json
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from containers import access, once, secrets
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
        "observer": STORES | {"analytics_store_url"} | KAFKA,
        "postgres": {"password"},
        "load": {"addresses.json", "issuer-key.pem"},
        "proxy": set(),
        "topics": KAFKA,
        "visitor": KAFKA,
        "kafka": {"authority.pem", "broker.pem"},
        "administrator": {"authority.pem", "admin.pem"},
    }
    addresses = json.loads(folders["load"]["addresses.json"])
    assert {name: addresses[name] for name in leave_out_added(addresses)} == {
        **{name: f"http://{name}:8000" for name in ("users-api", "orders-api", "analytics-api")},
        "jaeger": "http://jaeger:16686",
    }


SERVERS = {"users-api", "orders-api", "analytics-api", "analytics-faust", "postgres", "proxy"}
API = {"certificate.pem", "http_certificate_file", "http_ca_file"}


def test_with_tls_servers_have_a_certificate_and_clients_the_authority(tmp_path: Path) -> None:
    secrets.write(tmp_path)
    plain = contents(tmp_path)
    secrets.write(tmp_path, tls=True)
    folders = contents(tmp_path)
    del plain["keys"], folders["keys"]

    added = {name: files.keys() - plain[name].keys() for name, files in folders.items()}
    assert all("authority.pem" in files for files in folders.values())
    assert {
        name: leave_out_added(files - {"authority.pem"})
        for name, files in added.items()
        if files - {"authority.pem"} and not is_added(name)
    } == {
        **{name: API for name in SERVERS - {"postgres", "proxy"}},
        **{name: {"certificate.pem"} for name in ("postgres", "proxy")},
    }
    texts = {**folders["users-api"], **folders["analytics-tool"]}
    assert all(
        texts[name].endswith("?sslmode=verify-full&sslrootcert=/run/secrets/authority.pem")
        for name in ("database_url", *STORES)
    )
    assert json.loads(folders["load"]["addresses.json"])["users-api"] == "https://users-api:8000"


def test_without_tls_again_nothing_of_it_is_left(tmp_path: Path) -> None:
    secrets.write(tmp_path)
    plain = contents(tmp_path)
    del plain["keys"]
    secrets.write(tmp_path, tls=True)

    secrets.write(tmp_path)

    after = contents(tmp_path)
    del after["keys"]
    assert after == plain


def test_files_that_a_process_wrote_into_its_folder_stay(tmp_path: Path) -> None:
    secrets.write(tmp_path, tls=True)
    figures = tmp_path / "load" / "bench" / "load.json"
    figures.parent.mkdir()
    figures.touch()

    secrets.write(tmp_path)

    assert figures.exists()


def test_a_server_of_tls_cannot_connect_to_brokers_as_a_client(tmp_path: Path) -> None:
    secrets.write(tmp_path, tls=True)
    file = tmp_path / "users-api" / "certificate.pem"
    [certificate] = x509.load_pem_x509_certificates(file.read_bytes())

    uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(uses) == [ExtendedKeyUsageOID.SERVER_AUTH]


@pytest.mark.parametrize("setting", ["off", "yes"])
def test_a_setting_that_is_not_on_is_refused(
    setting: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOMETOWN_TLS", setting)
    monkeypatch.setattr("sys.argv", ["once", "secrets"])

    assert once.main() == 1
    assert f"HOMETOWN_TLS={setting}: set it to on, or remove it" in capsys.readouterr().err


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
