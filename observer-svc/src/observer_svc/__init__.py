"""The observer: lags and backlogs, measured from outside of the processes that cause them.

Comes in: committed offsets and log ends of Kafka (`groups`), the views of every database whose
names end with `_observations`, and `consumer_positions` (`databases`).
Goes out: gauges at `/metrics`, and the table of `make lag` (`table`).
Guarantees: the lag of a consumer that is dead still rises (`e2e-tests/test_lag.py`); its state is a
pure function of the last samples (`tests/unit/test_lag.py`).
Read `lag.py` first, then `watch.py`.
"""
