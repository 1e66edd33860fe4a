"""`python -m anabranch` is the `anabranch` command."""

import sys

from anabranch.command import main

sys.exit(main())
