"""The settings of the console: where the stack is, and where a browser finds it."""

import os
from pathlib import Path

from pydantic import Field

from shared.runtime.settings import ProcessSettings


class ConsoleSettings(ProcessSettings):
    """With a `run_dir` the stack consists of processes of this machine; without, of containers."""

    run_dir: Path | None = None
    public_addresses: dict[str, str] = Field(default_factory=dict)
    """In containers: the address of each published port, by the name of its process."""

    @property
    def issuer_dir(self) -> Path:
        """Where the key that signs tokens of development is."""
        return self.run_dir or Path(os.environ.get("SECRETS_DIR", "."))
