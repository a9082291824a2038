"""Every benchmark and its peers: `python -m benchmarks --list`, see README.md."""
