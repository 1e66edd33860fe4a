"""Figures as files."""

from __future__ import annotations

import re

import matplotlib
import pytest
from matplotlib.figure import Figure
from PIL import Image
from sample_results import losses

from anabranch.errors import FigureError
from anabranch.figures import new_figure, plot_metric, save, styled_axes


def drawn():
    with styled_axes() as axes:
        return plot_metric(losses(), schemes=["cmt"], ax=axes)


def test_the_same_figure_gives_the_same_bytes(tmp_path):
    for ending in ("svg", "png"):
        first = save(drawn(), tmp_path / f"first.{ending}").read_bytes()
        assert save(drawn(), tmp_path / f"second.{ending}").read_bytes() == first


def test_files_have_no_date_and_name_their_producer(tmp_path):
    text = save(drawn(), tmp_path / "figure.svg").read_text()
    assert "dc:date" not in text
    assert re.search(r"anabranch, matplotlib \d", text)
    with Image.open(save(drawn(), tmp_path / "figure.png")) as picture:
        assert picture.info["Software"].startswith("anabranch, matplotlib")
        assert not {"Date", "Creation Time"} & set(picture.info)


def test_pictures_are_a_column_wide_at_three_hundred_dots_per_inch(tmp_path):
    with Image.open(save(drawn(), tmp_path / "figure.png")) as picture:
        assert picture.width == 1050


def test_axes_parts_of_figures_and_figures_can_be_saved(tmp_path):
    whole = new_figure("page")
    left, right = whole.subfigures(1, 2)
    axes = left.subplots()
    right.subplots()
    sizes = {save(each, tmp_path / f"{place}.png").stat().st_size for place, each in enumerate((axes, left, whole))}
    assert len(sizes) == 1


def test_folders_are_created_without_other_files(tmp_path):
    save(drawn(), tmp_path / "a" / "b" / "figure.svg")
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["figure.svg"]


@pytest.mark.parametrize("name", ["figure.jpeg", "figure", "figure.pdf"])
def test_other_endings_are_refused_by_name(tmp_path, name):
    with pytest.raises(FigureError, match=rf"{re.escape(name)}: figures are written as \.svg or \.png"):
        save(drawn(), tmp_path / name)


def test_object_that_is_no_figure_is_refused(tmp_path):
    with pytest.raises(FigureError, match="not list"):
        save([], tmp_path / "figure.svg")


def test_a_file_that_cannot_be_written_is_named_and_leaves_the_old_one(tmp_path):
    (tmp_path / "figure.svg").mkdir()
    with pytest.raises(OSError, match=r"figure\.svg"):
        save(drawn(), tmp_path / "figure.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


def test_user_settings_of_matplotlib_do_not_affect_figures(tmp_path):
    taste = {
        "font.size": 20,
        "font.family": "serif",
        "axes.facecolor": "yellow",
        "lines.linewidth": 9,
        "grid.color": "red",
    }
    plain = save(drawn(), tmp_path / "plain.svg").read_bytes()
    with matplotlib.rc_context({**taste, "svg.fonttype": "none", "savefig.bbox": "tight", "xtick.labelsize": 30}):
        assert save(drawn(), tmp_path / "set.svg").read_bytes() == plain


def test_an_unknown_width_is_refused():
    with pytest.raises(FigureError, match="'column', 'page'"):
        new_figure("poster")
    assert isinstance(new_figure(), Figure)
