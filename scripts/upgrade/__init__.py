"""Bring a later release of the repository into a copy of it: `make upgrade to=TAG`.

Copier merges what the release changed with what the owner did. Then code that only the copy has
is rewritten to the forms of the release, what is generated is generated again, and checks name
what is left to the owner. Read `__main__.py` first, then `finish.py` and `codemods.py`.
"""
