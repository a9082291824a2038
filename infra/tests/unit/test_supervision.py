"""The supervisor's configuration says exactly what the process table says."""

from configparser import RawConfigParser
from dataclasses import replace

from local_stack import supervision
from local_stack.composition import Process, Site

WEB = Process(
    name="web",
    command=lambda site: ["serve", "--title", "two words, 100%", str(site.ports["web"])],
    environment=lambda site: {"DATABASE_URL": "postgresql://u:p%40ss@127.0.0.1/u", "A": "b c"},
    stop_seconds_max=7,
)


def section(site: Site, process: Process) -> dict[str, str]:
    parser = RawConfigParser()
    parser.read_string(supervision.config(site, [process]))
    return dict(parser[f"program:{process.name}"])


def test_commands_and_values_survive_quoting_and_expansion(site: Site) -> None:
    web = section(site, WEB)
    assert web["command"] == "serve --title 'two words, 100%%' 8099"
    assert web["environment"] == 'DATABASE_URL="postgresql://u:p%%40ss@127.0.0.1/u",A="b c"'


def test_a_required_process_always_comes_back_and_an_optional_one_may_leave(site: Site) -> None:
    assert section(site, WEB)["autorestart"] == "true"
    assert section(site, replace(WEB, required=False))["autorestart"] == "unexpected"


def test_a_process_has_the_time_to_stop_that_the_table_gives_it(site: Site) -> None:
    assert section(site, WEB)["stopwaitsecs"] == "7"


def test_where_no_supervisor_runs_there_are_no_programs(site: Site) -> None:
    assert supervision.programs(site.folder) is None
