"""What other schemes gain over CMT, seed by seed: python examples/gallery/gain_over_cmt.py [FILE.svg]"""

import sys
from pathlib import Path

import anabranch

SCENARIO = Path(__file__).parents[2] / "scenarios" / "shapes" / "db-cmt.toml"

results = anabranch.sweep(
    SCENARIO,
    over={"path.path-2.loss": [0, 0.02, 0.05, 0.1], "scheme": ["cmt", "cmt-pf", "cmt-qa", "a-cmt", "db-cmt"]},
    seeds=10,
    set={"run.duration": "30 s"},
)
with anabranch.figures.own_axes() as ax:
    anabranch.plot_bars(results, "goodput_kbps", baseline="cmt", ax=ax)
    anabranch.figures.save(ax, sys.argv[1] if len(sys.argv) > 1 else "gain_over_cmt.svg")
