"""`python -m cmpg` is the command `cmpg`."""

from cmpg.cli import main

if __name__ == "__main__":
    main()
