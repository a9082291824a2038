"""make crashes"""

import sys

from verification.crashes.campaign import main

if __name__ == "__main__":
    sys.exit(main())
