"""Faults and planned operations on a stack under load: `make drill`.

Clients place orders and move users all the time, and remember what was acknowledged. After each
step, that ledger is compared with the event stores and with the hours. One table at the end: lost,
twice, failed requests, seconds to recover.

Read first: steps.py (what is done), ledger.py (how a loss is found), campaign.py (the command).
"""
