"""Call the APIs as their OpenAPI documents allow, and as they do not: `make fuzz`.

Schemathesis generates the requests and compares each response with the document. An operation that
never succeeded fails the campaign too, because nothing was tested of it.

Read first: fuzzing.py (a round), schemathesis.toml and hooks.py (what the documents do not
express).
"""
