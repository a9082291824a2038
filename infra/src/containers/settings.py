"""Where a stack in containers runs, read from the environment."""

from typing import Literal

from pydantic import Field

from local_stack.settings import Settings


class ContainerSettings(Settings):
    """As those of processes, in a run folder of its own."""

    way: Literal[
        "containers",
        "cluster",
    ] = Field(default="containers", validation_alias="HOMETOWN_IN")
