"""Random interleavings of the credit saga, with repeats and deaths: `make saga`.

Both services run in one process on real databases. Hypothesis chooses which message is delivered
when, how often, to which worker, and where that worker dies. After each step the reserved credit
must balance with the orders, and at the end no order may be pending.

Read first: machine.py (the steps and the invariant), world.py (the services and their topics).
"""
