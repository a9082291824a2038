"""Leave parts of the project out: `make without part=NAME`.

`parts.toml` says of each part which files are its own, which other parts it needs, and by which
words a line is recognized that mentions it. What is cut out of all other files is the smallest unit
around such a line:

- in documents the row, the item, the line of code or the sentence; a section by its heading;
- in Python code the statement or the element that the line begins; of comments, the sentence;
- in tests the function; the element where it is one of a list outside of a function;
- in the Makefile the line of a recipe; the target, where its own line mentions the part;
- in settings the entry, with all that is indented below it.

A line that has no such word but goes with a part says so at its end: `# part: NAME`. The unit is
then the statement or the element also in tests. Read `removal.py` first.
"""
