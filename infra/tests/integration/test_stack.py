"""An undisturbed stack: up, up again, two at once, and what prevents a start."""

import asyncio
import json
import socket
import stat
import sys
from dataclasses import replace

import asyncpg
import pytest

from fetching.errors import Failure
from local_stack import figures, footprint, orphans, ports, supervision
from local_stack.__main__ import main
from local_stack.down import down
from local_stack.postgres import DATABASES, dsn, owner
from local_stack.readiness import NotReady
from local_stack.settings import Settings
from local_stack.stack_spec import Preparation, Process, StackContext, StackSpec
from local_stack.status import status
from local_stack.testing import throwaway_stack
from local_stack.up import up

COMPLAINT = "no such module as mine"


async def never_ready(context: StackContext) -> None:
    raise NotReady("not yet")


async def query(address: str, sql: str) -> object:
    connection = await asyncpg.connect(address)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


def test_up_twice_is_harmless_and_two_stacks_are_independent(
    small: StackSpec, running: StackContext
) -> None:
    before = {each.name: each.pid for each in status(small, running.settings)}
    with throwaway_stack(small) as other:
        assert not set(other.ports.values()) & set(running.ports.values())
        assert up(small, running.settings) == running
        after = status(small, running.settings)
        assert {each.name: each.pid for each in after} == before
        assert {each.state for each in after} == {"ready"}
    assert orphans.find(other.folder) == []
    assert {each.state for each in status(small, running.settings)} == {"ready"}


def test_up_writes_the_files_that_other_programs_read(
    small: StackSpec, running: StackContext
) -> None:
    assert json.loads(running.folder.addresses.read_text()) == {
        "postgres": running.address("postgres"),
        "kafka": running.address("kafka"),
        "kafka-controller": running.address("kafka-controller"),
        "web": f"http://{running.address('web')}",
    }
    for secret in (running.folder.secrets, running.folder.supervisor_config):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    names = {each["name"] for each in json.loads((running.folder / "bench/up.json").read_text())}
    assert names == {"postgres", "kafka", "web", "all"}
    memories = footprint.footprint(small, running.folder)
    assert [each.name for each in memories] == ["postgres", "kafka", "web", "supervisord", "all"]
    assert all(memory.resident for memory in memories)
    figures.write(running.folder, "footprint", footprint.as_figures(memories))
    assert "MiB" in footprint.as_table(memories)


def test_each_role_has_its_own_database_and_no_other(running: StackContext) -> None:
    for own in DATABASES:
        for role in (own, owner(own)):
            assert asyncio.run(query(dsn(running, role), "SELECT current_user")) == role
            for database in {*DATABASES, "postgres"} - {own}:
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    asyncio.run(query(dsn(running, role, database), "SELECT 1"))
    superuser = dsn(running, "postgres")
    assert asyncio.run(query(superuser, "SHOW synchronous_commit")) == "on"
    assert asyncio.run(query(superuser, "SHOW fsync")) == "on"
    assert str(asyncio.run(query(superuser, "SHOW server_version"))).startswith("18.")
    with pytest.raises(asyncpg.InvalidPasswordError):
        asyncio.run(query(superuser.replace(running.passwords["postgres"], "x"), "SELECT 1"))


def test_the_verb_reports_whether_all_is_ready(
    web_only: StackSpec,
    running_web: StackContext,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(running_web.folder.path))
    monkeypatch.setattr(sys, "argv", ["local_stack", "status"])
    assert main(web_only) == 0
    assert running_web.address("web") in capsys.readouterr().out
    down(web_only, running_web.folder)
    assert main(web_only) == 1
    assert "stopped" in capsys.readouterr().out


def test_a_process_that_cannot_start_is_named_with_its_error_and_the_rest_stays(
    web_only: StackSpec, running_web: StackContext, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Process(
        name="broken",
        command=lambda context: [sys.executable, "-c", f"raise SystemExit('{COMPLAINT}')"],
        probe=never_ready,
    )
    both = StackSpec(processes=(*web_only.processes, broken))
    running_web.folder.log_of("broken").write_text("hometown: the error of an earlier start\n")
    with pytest.raises(
        Failure, match=rf"^broken is not ready after \d s \({COMPLAINT}\): .*broken\.log"
    ) as failed:
        up(both, running_web.settings)
    assert COMPLAINT in failed.value.details
    assert capsys.readouterr().out.count(f"ended: {COMPLAINT}\n") == 1
    first, second = status(both, running_web.settings)
    assert first.state == "ready"
    assert second.state in ("dead", "starting")
    down(both, running_web.folder)
    assert orphans.find(running_web.folder) == []


def test_an_optional_process_that_exits_is_absent_and_the_rest_runs(
    web_only: StackSpec, running_web: StackContext
) -> None:
    guest = Process(
        name="guest",
        command=lambda context: [sys.executable, "-c", "import time; time.sleep(1.5)"],
        probe=never_ready,
        required=False,
        note=lambda folder: "could not be had",
    )
    patient = running_web.settings.model_copy(update={"jaeger_wait_seconds": 20})
    both = StackSpec(processes=(*web_only.processes, guest))
    up(both, patient)
    _, absent = status(both, patient)
    assert (absent.state, absent.reason) == ("absent", "could not be had")


def test_a_process_on_request_runs_when_requested(
    web_only: StackSpec, running_web: StackContext
) -> None:
    guest = Process(
        name="guest",
        command=lambda context: [sys.executable, "-c", "import time; time.sleep(60)"],
        required=False,
        on_request=True,
    )
    both = StackSpec(processes=(*web_only.processes, guest))
    settings = running_web.settings

    up(both, settings)
    assert [each.state for each in status(both, settings)] == ["ready", "stopped"]
    assert status(both, settings)[1].reason == "on request"
    with pytest.raises(Failure, match=r"^web: only guest can be requested"):
        up(both, settings, ["web"])
    up(both, settings, ["guest"])
    assert [each.state for each in status(both, settings)] == ["ready", "ready"]
    up(both, settings)
    assert [each.state for each in status(both, settings)] == ["ready", "ready"]


def test_a_preparation_that_fails_is_named_with_its_output(web_only: StackSpec) -> None:
    failing = Preparation(
        name="users tables",
        command=[sys.executable, "-c", f"raise SystemExit('{COMPLAINT}')"],
        environment=lambda context: {},
    )
    with (
        pytest.raises(Failure, match=rf"^users tables failed \({COMPLAINT}\)") as failed,
        throwaway_stack(replace(web_only, preparations=(failing,))),
    ):
        pass
    assert failed.value.details == [COMPLAINT]


def test_a_given_port_that_is_taken_stops_up_before_anything_starts(
    web_only: StackSpec, running_web: StackContext
) -> None:
    down(web_only, running_web.folder)
    with socket.create_server(("127.0.0.1", ports.find_free())) as server:
        taken = server.getsockname()[1]
        settings = running_web.settings.model_copy(update={"ports_given": {"web": taken}})
        with pytest.raises(Failure, match=f"^port {taken} for web is taken by"):
            up(web_only, settings)
    assert orphans.find(running_web.folder) == []


def test_a_supervisor_that_does_not_start_says_why(
    settings: Settings, web_only: StackSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "escape", lambda value: value.replace("%", "%(x"))
    percent = replace(web_only.processes[0], command=lambda context: ["100%"])

    with pytest.raises(Failure, match=r"^the supervisor does not start \(.*web.*\)"):
        up(StackSpec(processes=(percent,)), settings)
