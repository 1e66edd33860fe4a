"""Transfer time of a file over its size: python examples/gallery/transfer_time.py [FILE.svg]"""

import sys
from pathlib import Path

import anabranch as ab

SCENARIO = Path(__file__).parents[2] / "scenarios" / "file.toml"

results = ab.sweep(
    SCENARIO,
    over={"flow.flow-1.size": ["500 kB", "1 MB", "2 MB", "4 MB"], "scheme": ["sctp", "cmt", "bonded"]},
    seeds=10,
)
with ab.figures.styled_axes() as ax:
    ab.plot_transfer_time(results, ax=ax)
    print(ab.figures.save(ax, sys.argv[1] if len(sys.argv) > 1 else "transfer_time.svg"))
