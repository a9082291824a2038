"""The documentation as a site that needs no other host: `make docs`, `make docs-serve`.

`mkdocs.yml` has its settings and its navigation. The pages are the documents of the repository,
under their own paths, and the pages of `reference`, which are generated from the code.
Read first: pages.py (what becomes a page, and where its links lead), then __main__.py.
"""
