"""Python reads this at its start, where the folder is on the path: all that Spark starts has it.

Spark puts archives of its own packages before those that are installed, and what is imported from
an archive is compiled each time: most of a second for each process.
"""

import sys

sys.path = [path for path in sys.path if not path.endswith((".zip", ".jar"))]
