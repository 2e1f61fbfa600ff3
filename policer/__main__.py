"""python -m policer: the same as the command policer."""

from policer.cli.main import main

main()
