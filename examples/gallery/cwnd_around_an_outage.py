"""Congestion windows around an outage: python examples/gallery/cwnd_around_an_outage.py [FILE.svg]"""

import sys
from pathlib import Path

import anabranch as ab

SCENARIO = Path(__file__).parents[2] / "scenarios" / "outage.toml"

run = ab.run(SCENARIO, "cmt-pf", seed=1)
with ab.figures.styled_axes("page") as ax:
    ax.axvspan(30, 50, color="#ececec", linewidth=0, zorder=0, label="path-2 is down")
    ab.plot_cwnd(run, ssthresh=True, ax=ax)
    print(ab.figures.save(ax, sys.argv[1] if len(sys.argv) > 1 else "cwnd_around_an_outage.svg"))
