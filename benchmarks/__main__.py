"""python -m benchmarks [BENCHMARK] [--only PART] [--quick | --tiny] [--list]"""

import sys

from benchmarks.command import main

if __name__ == "__main__":
    sys.exit(main())
