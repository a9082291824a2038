"""The independent check: are the cells of final hours what the event stores say?

In: the event stores of users-svc and orders-svc, read-only, and the cells and batches of analytics.
Out: rows of `reconciliations`, errors in the log, and the output of `make reconcile`.
Guarantees, with the tests that show them:
- no line and no topic of the job is used, only SQL: reconcile.py imports nothing of it
- a cell that was tampered with is found: integration/test_reconcile.py
- orders and corrections that came too late are no differences: integration/test_reconcile.py
- an unavailable database is reported, and not taken for a difference:
  integration/test_reconciler.py
Read first: reconcile.py, the comparison; reconciler.py repeats it every hour.
"""
