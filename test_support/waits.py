"""How long a test waits for another process."""

HANGS_AFTER_SECONDS = 300.0
"""What a process has not done by then it will not do: the bound of every wait catches what hangs,
not what is slow. Where all is well, nothing takes longer for it."""
