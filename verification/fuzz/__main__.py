"""make fuzz"""

import sys

from verification.fuzz.campaign import main

if __name__ == "__main__":
    sys.exit(main())
