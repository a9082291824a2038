"""TLS of a stack, with the certificates that it makes itself: on the wire, without containers."""

import asyncio
import json
import os
import pwd
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import psycopg
import pytest
from starlette.applications import Starlette
from starlette.responses import FileResponse
from starlette.routing import Route
from uvicorn import Server

from containers import secrets
from local_stack import issuer
from local_stack.postgres import SUPERUSER, server_user, url
from local_stack.settings import CHECKOUT
from local_stack.testing import new_folder
from shared.web.connections import server_config
from shared.web.health import health_routes
from shared.web.signing_keys import KeysUnavailable, SigningKeys
from shared.web.tls import create_client_context
from test_support.waits import HANGS_AFTER_SECONDS

READY = "/health/ready"
POLL_SECONDS = 0.05

DEBIAN = Path("/usr/lib/postgresql")
"""The server of the Python wheel is built without TLS; that of a distribution has it."""

START = """#!/bin/bash
exec "$BINARIES/$1" -D "$PGDATA" "${@:2}"
"""
"""In the place of the image's script, which starts the server with the arguments given."""


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """The folders of the processes of a stack with TLS; PostgreSQL's user can enter them."""
    folder = new_folder()
    secrets.write(folder, tls=True)
    yield folder
    shutil.rmtree(folder)


# APIs


@asynccontextmanager
async def serving(certificate: Path, *routes: Route) -> AsyncIterator[int]:
    """The port of a server that is ready."""
    app = Starlette(routes=[*health_routes({}), *routes])
    server = Server(server_config(app, "127.0.0.1", 0, certificate_file=certificate))
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            await asyncio.sleep(POLL_SECONDS)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task


def context_of(made: Path, name: str) -> ssl.SSLContext:
    return create_client_context(made / name / secrets.AUTHORITY)


@pytest.fixture
async def port(made: Path) -> AsyncIterator[int]:
    async with serving(made / "users-api" / secrets.CERTIFICATE) as port:
        yield port


async def test_an_api_answers_a_client_that_has_the_authority(made: Path, port: int) -> None:
    async with httpx.AsyncClient(verify=context_of(made, "orders-api")) as client:
        answers = [
            await client.get(f"https://{host}:{port}{READY}") for host in secrets.THIS_MACHINE
        ]

    assert [answer.status_code for answer in answers] == [200, 200]


async def test_without_the_authority_a_client_does_not_call(port: int) -> None:
    async with httpx.AsyncClient(verify=create_client_context(None)) as client:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(f"https://127.0.0.1:{port}{READY}")


async def test_the_certificate_of_a_broker_is_none_of_an_api(made: Path) -> None:
    """The authority made it, but for other names."""
    async with serving(made / "kafka" / "broker.pem") as port:
        with socket.create_connection(("127.0.0.1", port)) as plain:
            context = context_of(made, "orders-api")
            with pytest.raises(ssl.SSLCertVerificationError, match="users-api"):
                await asyncio.to_thread(context.wrap_socket, plain, server_hostname="users-api")


async def test_an_api_with_a_certificate_does_not_answer_plain_requests(port: int) -> None:
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(f"http://127.0.0.1:{port}{READY}")


@pytest.mark.parametrize(("certificate", "is_healthy"), [("users-api", True), ("kafka", False)])
async def test_the_health_check_of_a_container_verifies_its_server(
    made: Path, tmp_path: Path, certificate: str, is_healthy: bool
) -> None:
    """A server with the certificate of another authority is not healthy."""
    if not is_healthy:
        secrets.write(tmp_path, tls=True)
    of_server = made if is_healthy else tmp_path
    async with serving(of_server / "users-api" / secrets.CERTIFICATE) as port:
        check = await asyncio.create_subprocess_exec(
            *("bash", str(CHECKOUT / "infra/healthy.sh")),
            env={**os.environ, "HTTP_PORT": str(port), "SECRETS_DIR": str(made / "users-api")},
        )
        status = await check.wait()

    assert (status == 0) is is_healthy


async def test_the_keys_of_an_issuer_are_fetched_from_a_server_of_a_trusted_authority(
    made: Path,
) -> None:
    keys = secrets.keys(made)
    [key, *_] = json.loads(issuer.public_keys(keys).read_text())["keys"]
    served = Route("/keys", lambda request: FileResponse(issuer.public_keys(keys)))
    certificate = made / "users-api" / secrets.CERTIFICATE

    async with serving(certificate, served) as port:
        url = f"https://127.0.0.1:{port}/keys"
        assert await SigningKeys(url, made / "users-api" / secrets.AUTHORITY).find(key["kid"])
        with pytest.raises(KeysUnavailable):
            await SigningKeys(url).find(key["kid"])


# PostgreSQL


def binaries() -> Path:
    """Of the newest server of the distribution; skips the test if there is none."""
    found = sorted(DEBIAN.glob("*/bin/postgres"), key=lambda file: int(file.parts[-3]))
    if not found:
        pytest.skip(f"no PostgreSQL with TLS in {DEBIAN}: apt-get install postgresql")
    return found[-1].parent


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def started(made: Path, access: str | None = None) -> Iterator[str]:
    """The address of a PostgreSQL that the script of the container has started, with its file of
    access or with this text in its place."""
    user, folder, port = server_user(), new_folder(), free_port()
    as_user: dict[str, Any] = {
        "user": user,
        "group": pwd.getpwnam(user).pw_gid if user else None,
        "extra_groups": [] if user else None,
    }
    (folder / "password").write_text(secrets.passwords_of(made)[SUPERUSER])
    script = folder / "docker-entrypoint.sh"
    script.write_text(START)
    script.chmod(0o755)
    if user:
        shutil.chown(folder, user)
        shutil.chown(folder / "password", user)
    folder.chmod(0o700)
    config = folder / "config"
    shutil.copytree(CHECKOUT / "infra/postgres", config)
    if access is not None:
        (config / "pg_hba.conf").write_text(access)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "HOMETOWN_TLS": "on",
        "SECRETS_DIR": str(made / SUPERUSER),
        "TMPDIR": str(folder),
        "BINARIES": str(binaries()),
        "PGDATA": str(folder / "data"),
    }
    initdb = ["--auth=scram-sha-256", f"--username={SUPERUSER}", f"--pwfile={folder}/password"]
    try:
        subprocess.run(
            [str(binaries() / "initdb"), *initdb, str(folder / "data")],
            check=True,
            capture_output=True,
            cwd=folder,
            **as_user,
        )
        server = subprocess.Popen(
            [
                *("bash", config / "start.sh", "postgres"),
                *("-c", f"port={port}", "-c", f"unix_socket_directories={folder}"),
                *("-c", "fsync=off"),
            ],
            env=environment,
            cwd=folder,
            stderr=subprocess.DEVNULL,
            **as_user,
        )
        try:
            demand_started(server, port)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(HANGS_AFTER_SECONDS)
    finally:
        shutil.rmtree(folder)


def demand_started(server: "subprocess.Popen[bytes]", port: int) -> None:
    command = [str(binaries() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    while subprocess.run(command).returncode != 0:
        assert server.poll() is None, "PostgreSQL has ended"
        with pytest.raises(subprocess.TimeoutExpired):
            server.wait(POLL_SECONDS)


async def ask_for_tls(dsn: str) -> bool:
    """Whether the connection uses TLS, as the server reports it."""
    connection = await asyncpg.connect(dsn)
    try:
        found = await connection.fetchval(
            "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        )
        return bool(found)
    finally:
        await connection.close()


def test_postgres_answers_with_tls_only(made: Path, tmp_path: Path) -> None:
    passwords = secrets.passwords_of(made)
    own = made / SUPERUSER / secrets.AUTHORITY
    secrets.write(tmp_path, tls=True)
    foreign = tmp_path / SUPERUSER / secrets.AUTHORITY

    with started(made) as address:
        dsn = url(address, passwords, SUPERUSER, ca_file=own)
        assert asyncio.run(ask_for_tls(dsn))
        with psycopg.connect(dsn) as connection:
            assert connection.pgconn.ssl_in_use
        with pytest.raises(ssl.SSLCertVerificationError):
            asyncio.run(ask_for_tls(url(address, passwords, SUPERUSER, ca_file=foreign)))
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match="no encryption"):
            asyncio.run(ask_for_tls(f"{url(address, passwords, SUPERUSER)}?sslmode=disable"))


def test_without_our_lines_of_access_postgres_answers_plain_connections(made: Path) -> None:
    """The negative control."""
    with started(made, "host all all all scram-sha-256") as address:
        plain = url(address, secrets.passwords_of(made), SUPERUSER)
        assert not asyncio.run(ask_for_tls(f"{plain}?sslmode=disable"))
