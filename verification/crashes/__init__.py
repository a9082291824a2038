"""Kill the Spark job, PostgreSQL and the broker around the job's commits: `make crashes`.

A random history is counted while processes die by SIGKILL, and the cells are compared with those of
one plain query. The same is done without the epoch row: if that finds nothing wrong, the campaign
fails.

Read first: campaign.py (the command and a trial), mortal_job.py (the job that dies at a step).
"""
