"""The secrets of a stack in containers: made once, in a volume, with a folder for each process.

A container sees the folder of its process alone. What is in it has the names of settings (see
`shared.runtime.processes.read_settings`).
"""

import json
from collections.abc import Iterable, Mapping
from functools import partial
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
from shared.runtime.declarations import Process, Service, load_declarations, store_url

POSTGRES = "postgres:5432"
JAEGER = "http://jaeger:16686"
APIS = [
    process.name
    for process in load_declarations().processes
    if process.public and process.profile is None
]
THIS_MACHINE = ("localhost", "127.0.0.1")
"""Under these names every published port is called from outside."""
BROKER_HOSTS = ("kafka", "kafka-2", "kafka-3", *THIS_MACHINE)
"""Under these names brokers are called, from inside and from outside."""
PROXY = "proxy"
MOUNTED = Path("/run/secrets")
"""Where a process finds its folder."""
AUTHORITY, CERTIFICATE = "authority.pem", "certificate.pem"
HTTP_SETTINGS = {
    "http_certificate_file": str(MOUNTED / CERTIFICATE),
    "http_ca_file": str(MOUNTED / AUTHORITY),
}
TLS_FILES = frozenset({AUTHORITY, CERTIFICATE, *HTTP_SETTINGS})
"""What is removed where it is not needed."""


FILES_OF_NEEDS = {
    "personal-data-key": ("personal_data_key",),
    "event-stores": tuple(map(store_url, READ_BY_RECONCILER)),
    "databases": tuple(map(store_url, DATABASES)),
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


def write(root: Path, *, tls: bool = False, renewed: bool = False) -> None:
    """Make the keys that are missing; those that are there stay, or the data of before could not be
    read. Certificates are also made if they end soon, or all of them if `renewed`. The other
    folders follow from these and from `tls`."""
    keys(root).path.mkdir(parents=True, exist_ok=True)
    passwords = passwords_of(root)
    issuer.establish(keys(root))
    made = folders(keys(root), passwords, tls=tls, renewed=renewed)
    if tls:
        made = with_tls(made, keys(root), renewed=renewed)
    for process, files in made.items():
        (root / process).mkdir(exist_ok=True)
        for name, text in files.items():
            write_atomically(root / process / name, text, mode=READABLE)
        # Others stay: a process can have files of its own in its folder.
        for name in TLS_FILES - files.keys():
            (root / process / name).unlink(missing_ok=True)


def files_of(service: Service, process: Process) -> tuple[str, ...]:
    """The files of a process without what it shows to Kafka, by their names."""
    return (
        *(("database_url",) if service.database else ()),
        *(("jwks.json",) if process.public else ()),
        *files_of_needs(process.needs),
    )


def files_of_needs(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for word in words for name in FILES_OF_NEEDS.get(word, ()))


def with_tls(
    folders: Mapping[str, Mapping[str, str]], kept: RunFolder, *, renewed: bool = False
) -> dict[str, dict[str, str]]:
    """The same, and what the servers of APIs and PostgreSQL and their clients need.

    Paths of files are settings like others: a process that has none of them uses no TLS.
    """
    authority = {AUTHORITY: kept.authority.read_text()}
    apis = {process.name for process in load_declarations().processes if process.public}

    def files(name: str) -> dict[str, str]:
        certificate = {}
        if name in {*apis, PROXY, SUPERUSER}:
            hosts = (name, *THIS_MACHINE)
            file = certificates.issue_certificate(
                kept.path, name, hosts, connects=False, renewed=renewed
            )
            certificate = {CERTIFICATE: file.read_text()}
        return authority | certificate | (HTTP_SETTINGS if name in apis else {})

    return {name: {**kept_files, **files(name)} for name, kept_files in folders.items()}


def folders(
    kept: RunFolder,
    passwords: Mapping[str, str],
    *,
    tls: bool = False,
    renewed: bool = False,
) -> dict[str, dict[str, str]]:
    """The files of each process, by their names."""
    ca_file = MOUNTED / AUTHORITY if tls else None

    def database(role: str) -> dict[str, str]:
        return {"database_url": url(POSTGRES, passwords, role, ca_file=ca_file)}

    authority = certificates.authority(kept.path).read_text()
    issue = partial(certificates.issue_certificate, kept.path, renewed=renewed)
    broker, administrator = issue("broker", BROKER_HOSTS).read_text(), issue("admin").read_text()
    issuer_key = issuer.private_key(kept)
    services = load_declarations().services
    texts = {
        "jwks.json": issuer.public_keys(kept).read_text(),
        "personal_data_key": personal_data_key(kept),
        **{
            store_url(name): url(POSTGRES, passwords, RECONCILER, name, ca_file=ca_file)
            for name in DATABASES
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
        "load": {
            "addresses.json": json.dumps(
                {name: f"http{'s' * tls}://{name}:8000" for name in APIS} | {"jaeger": JAEGER}
            ),
            issuer_key.name: issuer_key.read_text(),
        },
        PROXY: {},
        **{name: {} for name in (access.CREATOR, access.VISITOR)},
        "kafka": {"authority.pem": authority, "broker.pem": broker},
        "administrator": {"authority.pem": authority, "admin.pem": administrator},
    }
    for name in access.rights():
        folders[name] |= {"kafka_password": passwords[name], "authority.pem": authority}
    return folders
