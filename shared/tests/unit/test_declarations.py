"""What services declare is read from their folders, and a contradiction is one line."""

from pathlib import Path

import pytest

from shared.runtime import declarations
from shared.runtime.declarations import DeclarationError, load_declarations

NOTES = """
name = "notes"
package = "notes_svc"

[processes.api]
port = 9001
public = true
notifies = true

[processes.relay]
port = 9011
writes = ["notes.v1"]

[processes.worker]
port = 9021
reads = ["notes.v1"]

[database]
event_store = true

[topics."notes.v1"]
partitions = 2
key = "note_id"
contract = "notes_svc.contract"
types = ["note-written"]

[scopes]
"notes:read" = { allows = "read notes", roles = ["clerk"] }
"""

COUNTS = """
name = "counts"
package = "counts_svc"

[processes.job]
port = 9000
calls = ["notes"]
reads = ["notes.v1"]

[internal_topics."counts-changelog"]
partitions = 1
compacted = true
"""


def write(root: Path, **services: str) -> Path:
    for folder, text in services.items():
        (root / folder).mkdir()
        (root / folder / "service.toml").write_text(text)
    return root


def test_services_come_in_the_order_of_their_ports(tmp_path: Path) -> None:
    declared = load_declarations(write(tmp_path, a_notes=NOTES, b_counts=COUNTS))

    assert [(service.folder, service.name) for service in declared.services] == [
        ("b_counts", "counts"),
        ("a_notes", "notes"),
    ]
    assert [each.name for each in declared.processes] == [
        "counts-job",
        "notes-api",
        "notes-relay",
        "notes-worker",
    ]
    assert declared.databases == declared.event_stores == ("notes",)
    assert declared.readers("notes.v1") == ("counts-job", "notes-worker")
    assert declared.topics["notes.v1"].types == ("note-written",)
    assert declared.internal_topics["counts-changelog"].compacted
    assert declared.scopes["notes:read"].roles == ("clerk",)


def test_a_process_can_have_a_name_of_its_own(tmp_path: Path) -> None:
    text = COUNTS.replace("port = 9000", 'port = 9000\nname = "counter"')
    [process] = load_declarations(write(tmp_path, notes=NOTES, counts=text)).services[0].processes

    assert load_declarations(tmp_path).processes[0].name == "counter"
    assert process == "job"


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("port = 9000", "prot = 9000", r"counts/service.toml: processes.job.port: Field required"),
        ("calls", "color", r"counts/service.toml: processes.job.color: unknown key"),
        ("port = 9000", "port = 0", r"processes.job.port: Input should be greater than or equal"),
        ("port = 9000", "port = 9001", "port declared 2 times: 9001"),
        ("port = 9000", 'port = 9000\nname = "notes-api"', "name of a process declared 2 times"),
        ('"counts"', '"notes"', "name of a service declared 2 times: notes"),
        ("counts-changelog", "notes.v1", "topic declared 2 times: notes.v1"),
        (
            'reads = ["notes.v1"]',
            'reads = ["n.v1"]',
            "counts-job reads n.v1, which no service decl",
        ),
        (
            "reads",
            "describes = ['n.v1']\nreads",
            "counts-job reads n.v1, which no service declares",
        ),
        ("reads", "writes", "counts-job writes notes.v1, which is no topic of its service"),
        ('["notes"]', '["counts"]', "counts-job calls counts, and no service of that name has a"),
        ("reads", "notifies = true\nreads", "counts-job notifies a relay, and its service has no"),
        ("reads", "stores_offsets = true\nreads", "counts-job stores offsets, and its service has"),
        ("[internal", "[database]\nevent_store = true\n[internal", "event_store needs a process"),
        (
            "[internal",
            '[scopes]\n"notes:read" = {allows = "", roles = []}\n[internal',
            "scope decl",
        ),
        ("reads =", "reads", "counts/service.toml: "),
    ],
)
def test_a_declaration_that_cannot_be_right_is_one_line(
    tmp_path: Path, before: str, after: str, sentence: str
) -> None:
    assert before in COUNTS

    with pytest.raises(DeclarationError, match=sentence) as raised:
        load_declarations(write(tmp_path, notes=NOTES, counts=COUNTS.replace(before, after, 1)))
    assert "\n" not in str(raised.value)


def test_a_folder_without_services_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match=f"{tmp_path} has no folder with a service.toml"):
        load_declarations(tmp_path)


def test_the_folder_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (declarations.services_dir() / "shared").is_dir()

    monkeypatch.setenv("SERVICES_DIR", str(tmp_path))
    assert declarations.services_dir() == tmp_path
