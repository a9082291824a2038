"""What every process stands on: settings, logs, traces, PostgreSQL, and how it stops.

Comes in: environment variables and secret files (`settings`), SIGTERM and SIGINT (`processes`),
the socket of the process before (`listening`).
Goes out: connection pools and applied migrations (`postgres`), a service role's rights (`rights`),
login options of Kafka clients (`brokers`), spans (`telemetry`), metrics (`metrics`), lines of the
log (`logs`, and `log_lines` for those that read them), hints to the relay after a commit
(`relay_notifier`), and the places where tests kill a process (`failpoints`).
Guarantees: missing or unsafe settings stop a process before it works
(`tests/unit/test_settings.py`); an applied migration never changes
(`tests/integration/test_postgres.py`); a service's role cannot change facts
(`tests/integration/test_rights.py`); no line of the log quotes what an error says, and an outage is
one line a minute (`tests/unit/test_logs.py`).
Read `processes.py` first, then `postgres.py`. The lowest room: imports no other.
"""
