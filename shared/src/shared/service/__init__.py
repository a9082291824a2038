"""The processes of an event-sourced service, composed from the rooms below.

Comes in: one value, `Service`, with what differs from service to service; the arguments of
`python -m SERVICE`.
Goes out: a running process `api`, `relay` or `worker`, or a command such as `migrate` that ends.
Guarantees: every service has the same processes and commands, and a process imports only what it
needs (`tests/unit/test_command_line.py`).
Read `command_line.py`.
"""
