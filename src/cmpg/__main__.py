"""`python -m cmpg` is the command `cmpg`."""

from cmpg.cli.main import main

main()
