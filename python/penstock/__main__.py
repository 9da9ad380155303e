"""`python -m penstock VERB ...`: the program."""

from penstock.program import main

main()
