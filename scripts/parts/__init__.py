"""Leave parts of the project out: `make without part=NAME`.

`parts.toml` says of each part which files are its own, which other parts it needs, and by which
words a line is recognized that mentions it. Out of each other file goes the smallest unit with
a mention, so that no line of the part is left:

- in documents the row, the item, the line of code or the sentence; a section by its heading;
- in Python code the element of a list, or the statement by its first line; of comments, the
  sentence;
- in tests the element, or the test function;
- in the Makefile the line of a recipe, or the target by its own line;
- in settings the element of a list, or the entry with all that is indented below it.

Nothing else goes: a test demands that what is left mentions no part, and uses no name that went.
A line without such a word that goes with a part says so at its end, `# part: NAME`: then all that
begins in this line goes. Read `removal.py` first.
"""
