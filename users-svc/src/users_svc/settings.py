"""The settings of users-svc beside those that every process has."""

from shared.runtime.settings import Settings


class UsersSettings(Settings):
    relay_doorbell: str | None = None
    """host:port of the relay's UDP doorbell; without it the relay looks by itself."""
