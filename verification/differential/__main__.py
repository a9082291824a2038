"""make differential"""

import sys

from verification.differential.campaign import main

if __name__ == "__main__":
    sys.exit(main())
