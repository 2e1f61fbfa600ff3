"""python -m zovn: the same as the command zovn."""

from zovn.cli.main import main

main()
