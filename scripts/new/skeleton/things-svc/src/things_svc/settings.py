"""The settings of things-svc in addition to those that every process has."""

from shared.runtime.settings import Settings


class ThingsSettings(Settings):
    relay_address: str | None = None
    """host:port where the relay is notified, by UDP; without it the relay only polls."""
