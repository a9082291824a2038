"""The observer: lags and backlogs, measured from outside of the processes that cause them.

In: committed offsets, members and log ends of Kafka (`groups`); outboxes, relays, parked streams
and the views of consumers that store their offsets themselves (`databases`); a disk (`disk`).
Out: gauges at `/metrics` (`watch`), and one answer at `/lag` (`report`), which `make lag` prints
(`table`).
Guarantees: the lag of a consumer that is dead still rises, and a loop that hangs does not look like
a quiet one (`e2e-tests/test_lag.py`); a state is a pure function of the last measurements
(`tests/unit/test_states.py`).
Read `states.py` first, then `watch.py`.
"""
