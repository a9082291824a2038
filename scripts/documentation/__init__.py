"""The documents as a site that needs no other host: `make docs`.

`mkdocs.yml` has its settings and its navigation, `docs/.meta.yml` what its search shows first. The
pages are the documents of this checkout, under their own paths. Read first: pages.py (what becomes
a page, and where its links lead), then __main__.py.
"""
