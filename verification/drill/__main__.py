"""make drill"""

import sys

from verification.drill.campaign import main

if __name__ == "__main__":
    sys.exit(main())
