"""python -m xtc: the same as the command xtc."""

from xtc.cli.main import main

main()
