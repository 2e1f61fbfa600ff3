"""python -m xco: the same as the command xco."""

from xco.cli.main import main

main()
