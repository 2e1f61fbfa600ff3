"""python -m zovn.simulate."""

from zovn.simulate.cli import main

main()
