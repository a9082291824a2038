"""The demonstration without make and without Python on the machine."""

import json
import subprocess

from containers.compose import USUAL_FILE
from test_support.system.container_stack import ContainerStack
from test_support.system.stack import CHECKOUT, Stack

DEMO_SECONDS_MAX = 900
"""With the image, which the first call builds."""


def test_one_command_shows_the_answer_and_where_to_look_next(stack: Stack) -> None:
    """Vector V1; the sample is loaded already, which changes nothing."""
    assert isinstance(stack, ContainerStack)
    environment = {**stack.variables, **stack.project.environment, "COMPOSE_FILE": USUAL_FILE}

    printed = subprocess.run(
        ["docker", "compose", "run", "--rm", "--no-TTY", "demo"],
        cwd=CHECKOUT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=DEMO_SECONDS_MAX,
    ).stdout

    assert "hour 2016-11-11T00:00:00Z" in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["all", "4", "4", "12", "44506.56"] in rows
    assert "docker compose down " in printed
    # Addresses are those that a browser on this machine reaches, not those inside.
    addresses = json.loads((stack.folder / "addresses.json").read_text())
    assert f"{addresses['orders-api']}/v1/orders/" in printed
    assert "orders-api:8000" not in printed
    assert "jaeger:16686" not in printed
