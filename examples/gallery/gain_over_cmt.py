"""Gains of other schemes over CMT, seed by seed: python examples/gallery/gain_over_cmt.py [FILE.svg]"""

import sys
from pathlib import Path

import anabranch as ab

SCENARIO = Path(__file__).parents[2] / "scenarios" / "papers" / "db-cmt.toml"

results = ab.sweep(
    SCENARIO,
    over={"path.path-2.loss": [0, 0.02, 0.05, 0.1], "scheme": ["cmt", "cmt-pf", "cmt-qa", "a-cmt", "db-cmt"]},
    seeds=10,
    overrides={"run.duration": "30 s"},
)
with ab.figures.styled_axes() as ax:
    ab.plot_bars(results, "goodput_kbps", baseline="cmt", ax=ax)
    print(ab.figures.save(ax, sys.argv[1] if len(sys.argv) > 1 else "gain_over_cmt.svg"))
