"""Mechanisms every service uses: event store, outbox, relay, consumers, HTTP. No business word."""
