"""Campaigns that try to break the guarantees: see README.md."""
