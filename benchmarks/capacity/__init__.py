"""How many partitions, brokers, disks, workers and cores a load needs: `make plan`.

Pure functions from a load and the measured cost of a record to a plan; nothing is started.

Read first: plan.py (what is computed), costs.py (the figures it follows from).
"""
