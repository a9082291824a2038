"""make saga"""

from verification.saga.campaign import main

if __name__ == "__main__":
    main()
