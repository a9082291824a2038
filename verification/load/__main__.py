"""make load"""

from verification.load.campaign import main

if __name__ == "__main__":
    main()
