"""`make generate`: write files that cannot read the declarations, and the page of metrics.

A service with an event store whose processes are api, relay and worker gets all of its files.
What any other service needs besides, such as Spark's cluster, is written by hand in its folder.
"""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from containers import metric_registry
from containers.generated import (
    head,
    is_standard,
    own_variables,
    owner_variables,
    processes,
    relay_variables,
    without_blank_lines,
)
from containers.kubernetes import generate_manifests
from local_stack.progress import tell
from local_stack.settings import LEVEL_PREFIX, PORT_PREFIX, variable
from shared.runtime.declarations import (
    FILE,
    Declarations,
    Process,
    Service,
    load_declarations,
    services_dir,
)

BROKERS = "kafka:9092,kafka-2:9092,kafka-3:9092"
AUTHORITY = "/run/secrets/authority.pem"
SCHEME = "http${HOMETOWN_TLS:+s}"
"""Of the APIs, where Compose is called."""
SERVERS_MAX = 4
"""Containers of one API that the proxy finds."""
DEMO_SECONDS_MAX = 600
"""Until the sample is shown, on a machine with other work."""
DRAIN_SECONDS_MIN = "3"
"""In which the proxy has noticed that an API stops: it asks each second."""


def main() -> int:
    root = services_dir()
    for path in write(root, generate(load_declarations(), root)):
        tell(f"wrote {path}")
    return 0


def generate(declared: Declarations, root: Path) -> Mapping[str, str]:
    """The text of each generated file by its path in the checkout."""
    files = {
        "docker-compose.cluster.yml": cluster(declared, root),
        "infra/compose.demo.yml": demo_container(declared, root),
        "infra/compose.proxy.yml": proxy_container(declared),
        "infra/proxy/apis.cfg": proxy_listeners(declared),
        "docs/metrics.md": metric_registry.write(metric_registry.find_metrics(root)),
        **generate_manifests(declared, root),
    }
    for service in filter(is_standard, declared.services):
        files[f"{service.folder}/compose.yml"] = containers(declared, service)
        files[f"{service.folder}/compose.cluster.yml"] = replicas(service)
    return files


def proxied(declared: Declarations) -> list[Process]:
    """The APIs of a cluster that callers outside reach."""
    return [each for each in declared.processes if each.public and each.profile is None]


def stale(root: Path, files: Mapping[str, str]) -> list[str]:
    """Paths of the files that are not what is generated."""
    return [
        path
        for path, text in files.items()
        if not (root / path).exists() or (root / path).read_text() != text
    ]


def write(root: Path, files: Mapping[str, str]) -> list[str]:
    """Bring the files up to date; return the paths of those that were not."""
    paths = stale(root, files)
    for path in paths:
        (root / path).write_text(files[path])
    return paths


# Compose


def compose_variables(declared: Declarations, service: Service, process: Process) -> dict[str, str]:
    level = f"${{{variable(LEVEL_PREFIX, process.name)}:-${{LOG_LEVEL:-INFO}}}}"
    return {**own_variables(declared, service, process, SCHEME), "LOG_LEVEL": level}


def containers(declared: Declarations, service: Service) -> str:
    """`<service>/compose.yml`: three commands of one image, the migration, and the tool."""
    parts = [
        container(
            service,
            f"{service.name}-migrate",
            "migration",
            f"""
    build: {{context: .., dockerfile: {service.folder}/Dockerfile}}
    command: [migrate]
{variables(owner_variables(service))}
    depends_on: {{databases: {{condition: service_completed_successfully}}}}""",
        ),
        *(
            container(
                service,
                process.name,
                "service",
                f"""
    command: [{process.command}]
{variables(compose_variables(declared, service, process), process.settings)}
    depends_on:
      {service.name}-migrate: {{condition: service_completed_successfully}}
      topics: {{condition: service_completed_successfully}}
{published(process)}""",
            )
            for process in processes(service)
        ),
        f"  # docker compose run --rm {service.name}-tool rebuild --check\n"
        + container(
            service,
            f"{service.name}-tool",
            "tool",
            f"\n{variables(owner_variables(service) | relay_variables(service))}",
        ),
    ]
    about = f"# {service.folder}: commands of one image, each a process that restarts on its own.\n"
    return head(f"{service.folder}/{FILE}") + about + "services:\n" + "\n".join(parts)


def container(service: Service, name: str, kind: str, lines: str) -> str:
    text = f"""\
  {name}:
    extends: {{file: ../infra/compose/common.yml, service: {kind}}}
    image: {own_image(service.folder)}
{lines}
    volumes:
      - {{type: volume, source: secrets, target: /run/secrets, read_only: true, volume: {{subpath: {name}}}}}
"""  # noqa: E501 - one mount is one line of Compose
    return without_blank_lines(text)


def own_image(name: str) -> str:
    """Name an image as it is built here, or published where HOMETOWN_IMAGES says."""
    return f"${{HOMETOWN_IMAGES:-hometown}}/{name}:${{HOMETOWN_VERSION:-latest}}"


def variables(given: Mapping[str, str], handed_on: Iterable[str] = ()) -> str:
    """`handed_on` keep the value that they have where Compose is called."""
    lines = [f'      {name}: "{value}"' for name, value in given.items()]
    lines += [f"      {name}:" for name in handed_on]
    return "\n".join(["    environment:", *lines]) if lines else ""


def port_variable(process: Process) -> str:
    return f"${{{variable(PORT_PREFIX, process.name)}:-{process.port}}}"


def published(process: Process) -> str:
    return f'    ports: ["127.0.0.1:{port_variable(process)}:8000"]' if process.public else ""


def replicas(service: Service) -> str:
    """`<service>/compose.cluster.yml`: two of each, and a user of Kafka for those that need one."""
    names = [(process.name, process) for process in processes(service)]
    parts = [
        without_blank_lines(
            f"""\
  {name}:
{"    deploy: {replicas: 2}" if process else ""}
{"    ports: !reset []" if process and process.public else ""}
{variables(cluster_variables(name, process))}
"""
        )
        for name, process in [*names, (f"{service.name}-tool", None)]
    ]
    about = "# Two of each: a relay in reserve, workers share partitions, a proxy the requests.\n"
    return head(f"{service.folder}/{FILE}") + about + "services:\n" + "\n".join(parts)


def cluster_variables(name: str, process: Process | None) -> dict[str, str]:
    """What differs in a cluster for a process, or for a tool."""
    needs_kafka = process is None or process.reads or process.writes
    is_behind_proxy = process is not None and process.public
    return {
        **({"HTTP_DRAIN_SECONDS_MIN": DRAIN_SECONDS_MIN} if is_behind_proxy else {}),
        **(kafka_variables(name) if needs_kafka else {}),
    }


def kafka_variables(user: str) -> dict[str, str]:
    return {
        "KAFKA_USERNAME": user,
        "KAFKA_BOOTSTRAP_SERVERS": BROKERS,
        "KAFKA_CA_FILE": AUTHORITY,
    }


def has_containers(service: Service, root: Path, file: str) -> bool:
    """Whether a file of its containers is generated, or was written by hand."""
    return is_standard(service) or (root / service.folder / file).exists()


def cluster(declared: Declarations, root: Path) -> str:
    """`docker-compose.cluster.yml`: every service that has containers."""
    included = [
        ["infra/compose.yml", "infra/compose.cluster.yml", "infra/compose.proxy.yml"],
        *(
            [f"{service.folder}/compose.yml", f"{service.folder}/compose.cluster.yml"]
            for service in declared.services
            if has_containers(service, root, "compose.cluster.yml")
        ),
    ]
    return (
        head(f"*/{FILE}")
        + """\
# docker compose -f docker-compose.cluster.yml up --wait
# The same with every part but PostgreSQL more than once; docs/cluster.md lists what differs.
name: hometown-cluster
include:
"""
        + "".join(f"  - path: [{', '.join(paths)}]\n" for paths in included)
    )


# The demonstration


def demo_container(declared: Declarations, root: Path) -> str:
    """`infra/compose.demo.yml`: it calls inside, and prints the addresses that a browser uses."""
    usual = [
        process
        for service in declared.services
        if has_containers(service, root, "compose.yml")
        for process in processes(service)
        if process.profile is None
    ]
    waits_for = "".join(
        f"      {name}: {{condition: service_healthy, required: false}}\n"
        for name in (*(each.name for each in usual), "jaeger")
    )
    addresses = {
        each.name: f"{SCHEME}://127.0.0.1:{port_variable(each)}" for each in usual if each.public
    }
    addresses["jaeger"] = "http://127.0.0.1:${HOMETOWN_PORT_JAEGER:-16686}"
    shown = ",\n        ".join(f'"{name}": "{address}"' for name, address in addresses.items())
    return (
        head(f"*/{FILE}")
        + f"""\
# Loads the sample once, and prints the answer and where to look; not with HOMETOWN_DEMO=0.
services:
  demo:
    extends: {{file: compose/common.yml, service: "own${{HOMETOWN_IMAGES:+-published}}"}}
    image: {own_image("demo")}
    build: {{context: .., dockerfile: infra/Dockerfile, target: demo}}
    scale: ${{HOMETOWN_DEMO:-1}}
    # It stays, as `docker compose up --wait` takes a container that has ended for a failure.
    entrypoint: [bash, -c, "python -m scripts.demo && touch /tmp/shown && exec sleep infinity"]
    restart: on-failure:5
    environment: &addresses
      HOMETOWN_RUN_DIR: /run/hometown
      PUBLISHED_ADDRESSES: >-
        {{{shown}}}
    # A part that is not healthy in time is reported by the demonstration, if it needs it.
    depends_on:
{waits_for}    healthcheck:
      test: [CMD, test, -f, /tmp/shown]
      interval: 1m
      start_period: {DEMO_SECONDS_MAX}s
      start_interval: 500ms
    tmpfs: ["/tmp:size=16m"]
    mem_limit: 256m
    # It calls as load does: with the addresses inside, and the key that signs tokens.
    volumes: &keys
      - {{type: volume, source: secrets, target: /run/hometown, read_only: true, volume: {{subpath: load}}}}

  # docker compose run --rm trace
  trace:
    extends: {{file: compose/common.yml, service: tool}}
    image: {own_image("demo")}
    entrypoint: [python, -m, scripts.trace]
    environment: *addresses
    volumes: *keys
"""  # noqa: E501 - one mount is one line of Compose
    )


# The proxy


def proxy_container(declared: Declarations) -> str:
    apis = proxied(declared)
    ready = "".join(f"      {each.name}: {{condition: service_healthy}}\n" for each in apis)
    ports = "".join(f'      - "127.0.0.1:{port_variable(each)}:{each.port}"\n' for each in apis)
    return (
        head(f"*/{FILE}")
        + f"""\
# The proxy in front of the APIs of a cluster.
services:
  proxy:
    extends: {{file: compose/common.yml, service: own-server}}
    image: {own_image("proxy")}
    build: {{context: .., dockerfile: infra/proxy/Dockerfile}}
    depends_on:
{ready}    environment: {{HOMETOWN_TLS: "${{HOMETOWN_TLS:-}}"}}
    mem_limit: 128m
    ports:
{ports}    volumes:
      - {{type: volume, source: secrets, target: /run/secrets, read_only: true, volume: {{subpath: proxy}}}}
"""  # noqa: E501 - one mount is one line of Compose
    )


def proxy_listeners(declared: Declarations) -> str:
    return head(f"*/{FILE}") + "".join(f"\n{listener(each)}" for each in proxied(declared))


def listener(process: Process) -> str:
    minutes = process.response_minutes_max
    waits = "" if minutes is None else f"    timeout server {minutes}m\n"
    return f"""\
listen {process.name}
.if streq("$HOMETOWN_TLS",on)
    bind :{process.port} ssl crt /run/secrets/certificate.pem
    default-server ssl verify required verifyhost {process.name} ca-file {AUTHORITY}
.else
    bind :{process.port}
.endif
    http-request return status 404 if {{ path,url_dec /metrics }}
{waits}    server-template {process.name} {SERVERS_MAX} {process.name}:8000
"""


if __name__ == "__main__":
    sys.exit(main())
