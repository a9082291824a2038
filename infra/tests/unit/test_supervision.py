"""The supervisor's configuration matches the process table."""

import shlex
import signal
import subprocess
from configparser import RawConfigParser
from dataclasses import replace

from supervisor.datatypes import dict_of_key_value_pairs

from local_stack import supervision
from local_stack.stack_spec import Process, StackContext
from test_support.waits import HANGS_AFTER_SECONDS

WEB = Process(
    name="web",
    command=lambda context: ["serve", "--title", "two words, 100%", str(context.ports["web"])],
    environment=lambda context: {"DATABASE_URL": "postgresql://u:p%40ss@127.0.0.1/u", "A": "b c"},
    stop_seconds_max=7,
)


def section(context: StackContext, process: Process) -> dict[str, str]:
    parser = RawConfigParser()
    parser.read_string(supervision.config(context, [process]))
    return dict(parser[f"program:{process.name}"])


def test_commands_and_values_survive_quoting_and_expansion(context: StackContext) -> None:
    web = section(context, WEB)
    assert web["command"] == "serve --title 'two words, 100%%' 8099"
    assert web["environment"] == 'DATABASE_URL="postgresql://u:p%%40ss@127.0.0.1/u",A="b c"'


def test_the_supervisor_reads_each_value_as_it_was(context: StackContext) -> None:
    given = {"A": "a\\b", "B": "c, d", "C": "it's", "D": "p%40ss"}
    web = section(context, replace(WEB, environment=lambda context: given))

    read = dict_of_key_value_pairs(web["environment"].replace("%%", "%"))

    assert read == given


def test_a_required_process_is_always_restarted_and_an_optional_one_can_exit(
    context: StackContext,
) -> None:
    assert section(context, WEB)["autorestart"] == "true"
    assert section(context, replace(WEB, required=False))["autorestart"] == "unexpected"


def test_a_process_has_the_time_to_stop_that_the_table_gives_it(context: StackContext) -> None:
    assert section(context, WEB)["stopwaitsecs"] == "7"


def test_where_no_supervisor_runs_there_are_no_programs(context: StackContext) -> None:
    assert supervision.programs(context.folder) is None


def run(context: StackContext, process: Process) -> "subprocess.CompletedProcess[str]":
    command = shlex.split(section(context, process)["command"].replace("%%", "%"))
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
        # As `nohup` would leave it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )


def test_a_process_is_started_unmoved_by_the_signal_that_replaces_it(context: StackContext) -> None:
    """Until it handles it itself."""
    signalled = replace(WEB, command=lambda _: ["/bin/sh", "-c", "kill -HUP $$; echo 'it is here'"])

    assert run(context, signalled).returncode == -signal.SIGHUP
    assert run(context, replace(signalled, replaced_on="HUP")).stdout == "it is here\n"
