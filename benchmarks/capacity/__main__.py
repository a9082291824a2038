"""make plan"""

import sys

from benchmarks.capacity.command import main

if __name__ == "__main__":
    sys.exit(main())
