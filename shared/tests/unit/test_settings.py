"""Outside development nothing is accepted that everybody knows, and one line says what."""

from pathlib import Path

import pytest

from shared.runtime import processes
from shared.runtime.settings import DEVELOPMENT_ISSUER, Settings
from shared.web import api_process

PASSWORD = "Xq7-" + "long-and-random"


def at(password: str, *others: str) -> dict[str, str]:
    """The address of a database, with the role's password for each of its hosts."""
    hosts = ",".join(f"users:{each}@db" for each in (password, *others))
    return {"DATABASE_URL": f"postgresql://{hosts}/users"}


GOOD = {
    **at(PASSWORD),
    "AUTH_ISSUER": "https://issuer.example",
    "AUTH_JWKS_URL": "https://issuer.example/keys",
}
REFUSED: list[dict[str, str]] = [
    {"DATABASE_URL": "postgresql://users@db/users"},
    at(""),
    at("users"),
    at("USERS"),
    at("postgres"),
    at("changeme"),
    at("%63hangeme"),
    at(PASSWORD, "secret"),
    {"AUTH_ISSUER": DEVELOPMENT_ISSUER},
    {"AUTH_JWKS_URL": "file:///keys.json"},
    {"AUTH_JWKS_URL": "http://issuer.example/keys"},
]


def read(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return processes.read_settings(Settings)


@pytest.mark.parametrize("wrong", REFUSED, ids=str)
@pytest.mark.parametrize("said", [{}, {"ENVIRONMENT": "production"}], ids=str)
def test_what_everybody_knows_is_refused_in_production_and_where_nobody_said(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str], said: dict[str, str]
) -> None:
    [name] = wrong

    with pytest.raises(SystemExit) as ended:
        read(monkeypatch, GOOD | wrong | said)

    line = str(ended.value)
    assert line.startswith(f"hometown: settings are wrong: {name}: ")
    assert "\n" not in line
    assert "Xq7" not in line


@pytest.mark.parametrize("wrong", REFUSED, ids=str)
def test_in_development_all_of_it_is_accepted(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]
) -> None:
    read(monkeypatch, GOOD | wrong | {"ENVIRONMENT": "development"})


def test_good_settings_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(monkeypatch, GOOD)

    assert settings.environment == "production"
    assert api_process.create_authenticator(settings)


@pytest.mark.parametrize("missing", ["AUTH_ISSUER", "AUTH_JWKS_URL"])
def test_an_api_does_not_start_without_an_issuer(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    settings = read(monkeypatch, {n: v for n, v in GOOD.items() if n != missing})

    with pytest.raises(SystemExit, match="AUTH_ISSUER and AUTH_JWKS_URL are required"):
        api_process.create_authenticator(settings)


def test_an_unknown_environment_is_no_development(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="ENVIRONMENT"):
        read(monkeypatch, GOOD | {"ENVIRONMENT": "developement", "AUTH_ISSUER": DEVELOPMENT_ISSUER})


def test_a_secret_may_be_a_file_and_is_no_less_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "database_url").write_text(GOOD["DATABASE_URL"] + "\n")
    others = {name: value for name, value in GOOD.items() if name != "DATABASE_URL"}

    settings = read(monkeypatch, others | {"SECRETS_DIR": str(tmp_path)})
    assert settings.database_dsn == GOOD["DATABASE_URL"]

    (tmp_path / "database_url").write_text(at("changeme")["DATABASE_URL"])
    with pytest.raises(SystemExit, match="DATABASE_URL: "):
        read(monkeypatch, others)
