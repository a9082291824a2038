"""How fast orders and events are accepted, delivered and consumed."""
