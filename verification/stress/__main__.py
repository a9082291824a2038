"""make stress"""

import sys

from verification.stress.campaign import main

if __name__ == "__main__":
    sys.exit(main())
