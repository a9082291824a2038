"""The settings of things-svc in addition to those that every process has."""

from shared.runtime.settings import Settings


class ThingsSettings(Settings):
    relay_address: str | None = None
    """host:port of the relay's notifications, by UDP; without it the relay only polls."""
