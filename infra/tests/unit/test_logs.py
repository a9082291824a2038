"""Reading logs: whole lines only, with their process, and across rotation."""

import pytest

from fetching.errors import Failure
from local_stack import logs
from local_stack.logs import ERROR_CHARACTERS_MAX, find_error
from local_stack.run_folder import RunFolder


@pytest.fixture
def folder_with_logs(folder: RunFolder) -> RunFolder:
    folder.log_of("web").write_text("one\ntwo\nthree\n")
    folder.log_of("kafka").write_text("started\n")
    return folder


def test_the_last_lines_of_one(folder_with_logs: RunFolder) -> None:
    chosen = logs.choose_files(folder_with_logs, "web")
    assert list(logs.last(chosen, 2)) == ["two", "three"]


def test_lines_of_several_logs_have_the_name_of_their_process(folder_with_logs: RunFolder) -> None:
    lines = list(logs.last(logs.choose_files(folder_with_logs, None), 1))
    assert [line.split() for line in lines] == [["kafka", "started"], ["web", "three"]]


def test_a_terminal_gets_text_and_a_program_the_line_as_it_is(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = '{"time": "2026", "level": "info", "message": "starts", "n": 1}'
    folder.log_of("web").write_text(f"{line}\nplain\n")
    chosen = logs.choose_files(folder, "web")

    assert list(logs.last(chosen, 2)) == [line, "plain"]
    monkeypatch.setattr(logs, "is_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert list(logs.last(chosen, 2)) == ["2026 INFO     starts n=1", "plain"]
    monkeypatch.delenv("NO_COLOR")
    assert "\033" in next(logs.last(chosen, 2))


def test_an_unknown_name_is_one_line(folder_with_logs: RunFolder) -> None:
    with pytest.raises(Failure, match="there is no log of wbe: choose one of kafka, web"):
        logs.choose_files(folder_with_logs, "wbe")


def test_a_line_is_read_once_it_is_whole(folder_with_logs: RunFolder) -> None:
    log = folder_with_logs.log_of("web")
    position = log.stat().st_size
    with log.open("a") as file:
        file.write("fo")
        file.flush()
        assert logs.lines_since(log, position) == ([], position)
        file.write("ur\n")
    assert logs.lines_since(log, position) == (["four"], position + 5)


def test_a_rotated_log_is_read_from_its_start(folder_with_logs: RunFolder) -> None:
    log = folder_with_logs.log_of("web")
    position = log.stat().st_size
    log.write_text("new\n")
    assert logs.lines_since(log, position) == (["new"], 4)


@pytest.mark.parametrize(
    ("log", "error"),
    [
        ("INFO starts\nhometown: settings are wrong: X\nmore", "settings are wrong: X"),
        ("ValueError: one\nhometown: the reason", "the reason"),
        (
            "Traceback (most recent call last):\n"
            '  File "a.py", line 1\n    raise ConfigError("x")\nConfigError: no such host\n',
            "ConfigError: no such host",
        ),
        (
            "a.b.Oops: x\nasyncpg.exceptions.SomeError: first\nOther: y",
            "asyncpg.exceptions.SomeError: first",
        ),
        (
            'Exception in thread "main" java.lang.Oops: x\n\tat y',
            'Exception in thread "main" java.lang.Oops: x',
        ),
        ("2026 UTC [1] LOG:  x\n2026 UTC [1] FATAL:  no room\n", "2026 UTC [1] FATAL:  no room"),
        (
            "[2026] ERROR Exiting Kafka (kafka.Kafka$)\n",
            "[2026] ERROR Exiting Kafka (kafka.Kafka$)",
        ),
        (
            "ERROR Exiting (Kafka$)\njava.lang.RuntimeException: none\n",
            "java.lang.RuntimeException: none",
        ),
        ("initdb: error: no locale\n", "initdb: error: no locale"),
        ("no such module as mine\n\n", "no such module as mine"),
        (
            '{"time": "2026", "level": "info", "message": "starts"}\n'
            '{"time": "2026", "level": "critical", "message": "the job ends: no table"}\n'
            '{"time": "2026", "level": "info", "message": "bye"}\n',
            "CRITICAL the job ends: no table",
        ),
        ('{"time": "2026", "level": "info", "message": "bye"}\n', "INFO bye"),
        (
            '{"time": "2026", "level": "warning", "message": "no broker", "error": "OSError: x"}',
            "WARNING no broker: OSError: x",
        ),
        (
            '{"time": "2026", "level": "error", "message": "no", "exception": "at x\\nOops\\n"}',
            "ERROR no: Oops",
        ),
        ("Error " + "x" * 1_000, "Error " + "x" * (ERROR_CHARACTERS_MAX - 6)),
        ("", ""),
    ],
)
def test_the_error_in_a_log_is_found(log: str, error: str) -> None:
    assert find_error(log.splitlines()) == error
