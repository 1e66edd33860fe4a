"""Blocking on dissimilar paths: python examples/gallery/dissimilar_paths.py [FILE.svg]"""

import sys
from pathlib import Path

import anabranch as ab

SCENARIO = Path(__file__).parents[2] / "scenarios" / "two-path.toml"

scenario = ab.Scenario.read(SCENARIO).with_values(
    {"run.duration": "10 s", "path.path-2.delay": "250 ms", "association.recv_buffer": "64 KiB", "path.*.loss": 0}
)
run = ab.run(scenario, "cmt", seed=1)
between = (5.0, 7.0)
with ab.figures.styled_axes("page") as ax:
    for row in run.series.blocked().itertuples():
        ax.axvspan(row.start_s, row.end_s, color="#ececec", linewidth=0, zorder=0)
    ax.patches[0].set_label("blocked")
    ab.plot_tsn(run, between=between, ax=ax)
    ax.set_xlim(*between)
    print(ab.figures.save(ax, sys.argv[1] if len(sys.argv) > 1 else "dissimilar_paths.svg"))
