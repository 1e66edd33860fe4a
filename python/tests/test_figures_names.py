"""Public names of `anabranch.figures`, and the modules that they load."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import anabranch
from anabranch import figures
from anabranch.figures.catalogue import FIGURES


def test_every_listed_name_exists() -> None:
    for name in dir(figures):
        assert callable(getattr(figures, name))
    with pytest.raises(AttributeError, match="plot_pie"):
        _ = figures.plot_pie


def test_every_plot_is_at_the_top_of_the_package_too() -> None:
    plots = {name for name in dir(figures) if name.startswith("plot_")}
    assert len(plots) == 10
    assert {name for name in dir(anabranch) if name.startswith("plot_")} == plots
    for name in plots:
        assert getattr(anabranch, name) is getattr(figures, name)


def test_every_plot_takes_axes_and_title_and_has_a_docstring() -> None:
    for entry in FIGURES.values():
        parameters = inspect.signature(entry.draw).parameters
        assert {"ax", "title"} | entry.options <= set(parameters)
        assert parameters["ax"].default is None
        assert parameters["title"].default is None
        assert inspect.getdoc(entry.draw)


def test_access_to_figures_and_statistics_loads_no_pyplot_or_statsmodels() -> None:
    code = (
        "import sys, anabranch; anabranch.figures; heavy = {'matplotlib', 'pandas', 'scipy', 'statsmodels'}\n"
        "print(heavy & set(sys.modules)); anabranch.plot_bars; anabranch.statistics.summary\n"
        "print({'matplotlib.pyplot', 'scipy.stats', 'statsmodels'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\nset()\n"
