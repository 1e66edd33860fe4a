"""Goodput over the loss of the second path: python examples/gallery/goodput_over_loss.py [FILE.svg]"""

import sys
from pathlib import Path

import anabranch as ab

SCENARIO = Path(__file__).parents[2] / "scenarios" / "papers" / "db-cmt.toml"

results = ab.sweep(
    SCENARIO,
    over={"path.path-2.loss": [0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1], "scheme": ["sctp", "cmt", "cmt-pf", "db-cmt"]},
    seeds=10,
    overrides={"run.duration": "30 s"},
)
with ab.figures.styled_axes() as ax:
    ab.plot_metric(results, "goodput_kbps", ax=ax)
    print(ab.figures.save(ax, sys.argv[1] if len(sys.argv) > 1 else "goodput_over_loss.svg"))
