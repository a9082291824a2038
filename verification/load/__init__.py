"""Realistic load at a given rate, and a comparison of all totals at its end: `make load`.

A seed makes a plan of actions. Each begins when it is due, whether or not earlier ones have been
answered. What analytics, credit and order lists must show is computed from the responses alone and
compared with what the APIs return.

Read first: campaign.py (the command), plan.py (what is sent), expected.py (what must follow).
"""
