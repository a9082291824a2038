"""python -m test_support.surfaces: what each part of a checkout shows of its services, as JSON.

Run in the checkout that it is about. A surface is a text, such as a page or a generated file.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx
from starlette.applications import Starlette

from console_svc.__main__ import create_app
from console_svc.catalog import list_entries
from console_svc.control import Control
from console_svc.orders import Shop
from console_svc.page import Console
from console_svc.watch import Watch
from containers import access, secrets
from local_stack import issuer
from local_stack.hometown import HOMETOWN
from local_stack.postgres import DATABASES
from local_stack.settings import CHECKOUT
from observer_svc.groups import list_partitions
from scripts import dashboards, request_files
from scripts.documentation import reference
from shared.messaging.topics import TOPICS
from shared.runtime.declarations import load_declarations
from test_support.small_stack import SmallStack


def list_surfaces(root: Path) -> Mapping[str, str]:
    declared = load_declarations()
    return {
        "local stack": write_lines(
            *(f"{each.name} {each.ports[0].default}" for each in HOMETOWN.processes),
            *(each.name for each in HOMETOWN.preparations),
            *(f"tool {each.name}" for each in HOMETOWN.tools),
        ),
        "topics": write_lines(*(f"{each.name} {each.readers}" for each in TOPICS.values())),
        "lag": write_lines(
            *(
                f"{each.name} {sorted({place.topic for place in list_partitions(each.name)})}"
                for each in declared.processes
            ),
            *(f"outbox of {database}" for database in DATABASES),
        ),
        "rights in Kafka": write_lines(*access.rights()),
        "secrets": write_lines(secrets.FILES_OF_NEEDS["databases"], secrets.APIS),
        "roles": write_lines(*(f"{role} {scopes}" for role, scopes in issuer.ROLES.items())),
        "kubernetes": read(root, "infra/k8s/kustomization.yaml"),  # part: kubernetes
        "proxy": read(root, "infra/proxy/apis.cfg", "infra/compose.proxy.yml"),  # part: cluster
        **{
            f"targets {file.stem}": file.read_text()
            for file in (root / "infra/observability/prometheus").glob("*.yml")
        },
        "dashboards": read(root, f"infra/observability/dashboards/{dashboards.SERVICE}.json"),
        "asyncapi": read(root, "contracts/asyncapi.json"),
        "requests": "".join(
            file.read_text() for file in sorted((root / request_files.FOLDER).iterdir())
        ),
        "ports of an editor": read(root, ".devcontainer/devcontainer.json"),
        **{path: text for path, text in reference.generate().items()},
        "reference": write_lines(*reference.generate()),
        **asyncio.run(render_console()),  # part: console
    }


def write_lines(*values: object) -> str:
    return "\n".join(map(str, values))


def read(root: Path, *paths: str) -> str:
    return "".join((root / path).read_text() for path in paths)


async def render_console() -> Mapping[str, str]:
    """The pages of the console, of a stack in which nothing responds."""
    declared = load_declarations()
    addresses = {each.name: f"http://{each.name}.invalid" for each in declared.processes}
    stack = SmallStack(entries=list_entries(declared, addresses, addresses))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(Starlette())) as unanswered:
        shop = Shop(stack.entries, unanswered, lambda role: role)
        console = Console(
            declared=declared,
            stack=stack,
            watch=Watch(stack, unanswered),
            control=Control(stack, shop, unanswered),
            shop=shop,
        )
        transport = httpx.ASGITransport(create_app(console))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000"
        ) as visitor:
            pages = {
                each.name: await visitor.get(f"/processes/{each.name}")
                for each in declared.processes
            }
            return {
                "console": (await visitor.get("/")).text,
                "console's processes": write_lines(
                    *(f"{name}: {page.status_code}" for name, page in pages.items())
                ),
            }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(list_surfaces(CHECKOUT)))
