"""Try to make the relay lose, invent or reorder events: `make stress`, see README.md.

Many writers use every freedom that PostgreSQL gives to transactions, while relays and the broker
are killed and frozen. What the writers committed, what the event store holds and what a consumer
read are then compared. Two simpler relays run under the same writers: if their flaws do not show,
the campaign fails.

Read first: campaign.py (the command), trial.py (one run), ledger.py (the verdict).
"""
