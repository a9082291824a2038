"""The secrets of a stack in containers: made once, in a volume, with a folder for each process.

A container sees the folder of its process alone. What is in it has the names of settings (see
`shared.runtime.processes.read_settings`).
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from containers import access, certificates
from local_stack import issuer
from local_stack.postgres import (
    DATABASES,
    READ_BY_RECONCILER,
    RECONCILER,
    ROLES,
    SUPERUSER,
    owner,
    url,
)
from local_stack.run_folder import RunFolder, load_passwords, personal_data_key, write_atomically
from shared.runtime.declarations import Process, Service, load_declarations

POSTGRES = "postgres:5432"
APIS = {
    process.name: f"http://{process.name}:8000"
    for process in load_declarations().processes
    if process.public and process.profile is None
}
"""Where callers inside find them."""
BROKER_HOSTS = ("kafka", "kafka-2", "kafka-3", "localhost", "127.0.0.1")
"""Under these names brokers are called, from inside and from outside."""


def store_url(database: str) -> str:
    return f"{database}_store_url"


FILES_OF_NEEDS = {
    "personal-data-key": ("personal_data_key",),
    "event-stores": tuple(map(store_url, READ_BY_RECONCILER)),
}
"""What a need adds to the folder of a process or tool; other needs add nothing secret."""

READABLE = 0o444
"""The processes of other images read their folders as other users."""


def keys(root: Path) -> RunFolder:
    """All that the other folders are made of."""
    return RunFolder(root / "keys")


def passwords_of(root: Path) -> dict[str, str]:
    """Of the roles of databases and the users of Kafka; created once, and kept."""
    return load_passwords(keys(root), (*ROLES, *access.rights()))


def write(root: Path) -> None:
    """Make what is missing; what is there stays, or the data of before could not be read."""
    keys(root).path.mkdir(parents=True, exist_ok=True)
    passwords = passwords_of(root)
    issuer.establish(keys(root))
    for process, files in folders(keys(root), passwords).items():
        (root / process).mkdir(exist_ok=True)
        for name, text in files.items():
            write_atomically(root / process / name, text, mode=READABLE)


def files_of(service: Service, process: Process) -> tuple[str, ...]:
    """The files of a process without what it shows to Kafka, by their names."""
    return (
        *(("database_url",) if service.database else ()),
        *(("jwks.json",) if process.public else ()),
        *files_of_needs(process.needs),
    )


def files_of_needs(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for word in words for name in FILES_OF_NEEDS.get(word, ()))


def folders(kept: RunFolder, passwords: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The files of each process, by their names."""

    def database(role: str) -> dict[str, str]:
        return {"database_url": url(POSTGRES, passwords, role)}

    authority = certificates.authority(kept.path).read_text()
    broker = certificates.issue_certificate(kept.path, "broker", BROKER_HOSTS).read_text()
    administrator = certificates.issue_certificate(kept.path, "admin").read_text()
    issuer_key = issuer.private_key(kept)
    services = load_declarations().services
    texts = {
        "jwks.json": issuer.public_keys(kept).read_text(),
        "personal_data_key": personal_data_key(kept),
        **{
            store_url(name): url(POSTGRES, passwords, RECONCILER, name)
            for name in READ_BY_RECONCILER
        },
    }
    folders: dict[str, dict[str, str]] = {
        SUPERUSER: {"password": passwords[SUPERUSER]},
        **{f"{name}-migrate": database(owner(name)) for name in DATABASES},
        **{
            f"{service.name}-tool": {
                **database(owner(service.name)),
                **{name: texts[name] for name in files_of_needs(service.tool.needs)},
            }
            for service in services
            if service.database
        },
        **{
            process.name: {
                name: {**texts, **(database(service.name) if service.database else {})}[name]
                for name in files_of(service, process)
            }
            for service in services
            for process in service.processes.values()
        },
        "load": {"addresses.json": json.dumps(APIS), issuer_key.name: issuer_key.read_text()},
        **{name: {} for name in (access.CREATOR, access.VISITOR)},
        "kafka": {"authority.pem": authority, "broker.pem": broker},
        "administrator": {"authority.pem": authority, "admin.pem": administrator},
    }
    for name in access.rights():
        folders[name] |= {"kafka_password": passwords[name], "authority.pem": authority}
    return folders
