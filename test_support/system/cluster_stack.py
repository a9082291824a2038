"""A stack of containers with several brokers, instances of the services, and Spark workers."""

from dataclasses import dataclass
from typing import ClassVar

from containers.access import VISITOR
from local_stack.run_folder import read_json
from local_stack.settings import Way
from shared.runtime.brokers import Brokers, Login
from test_support.system.container_stack import ContainerStack

BROKERS = {1: "kafka", 2: "kafka-2", 3: "kafka-3"}
"""By their numbers."""


@dataclass(frozen=True, slots=True)
class ClusterStack(ContainerStack):
    way: ClassVar[Way] = "cluster"

    def brokers_of(self, username: str) -> Brokers:
        """All brokers, by their addresses outside of the stack, with the login of the user."""
        addresses = self.hometown.addresses
        login = Login(
            username=username,
            password=read_json(self.folder.secrets)[username],
            ca_file=self.folder / "authority.pem",
        )
        return Brokers(",".join(addresses[name] for name in BROKERS.values()), login)

    @property
    def brokers(self) -> Brokers:
        return self.brokers_of(VISITOR)
