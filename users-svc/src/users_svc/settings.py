"""The settings of users-svc beside those that every process has."""

from shared.runtime.settings import Settings


class UsersSettings(Settings):
    relay_address: str | None = None
    """host:port where the relay is notified, by UDP; without it the relay only polls."""
