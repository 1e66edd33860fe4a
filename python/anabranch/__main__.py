"""`python -m anabranch` runs the `anabranch` command."""

import sys

from anabranch.command import main

if __name__ == "__main__":
    sys.exit(main())
