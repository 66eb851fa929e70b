"""`python -m cmpg` is the command `cmpg`."""

from cmpg.cli import main

main()
