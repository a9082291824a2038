"""The settings of users-svc, besides those of every process."""

from shared.runtime.settings import Settings


class UsersSettings(Settings):
    relay_address: str | None = None
    """host:port of the relay's notifications, by UDP; without it the relay only polls."""
