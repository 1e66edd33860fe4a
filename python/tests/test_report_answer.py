"""Sentences at the beginning of a report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from report_samples import LOSSES

import anabranch as ab
from anabranch.reporting.answer import answer
from anabranch.results import Results

KEY = "path.path-2.loss"


@pytest.fixture(scope="module")
def made() -> Results:
    """Runs of two schemes at three points, whose figures tests replace."""
    scenario = ab.Scenario.parse(LOSSES).with_values({"run.duration": "1 s"})
    return ab.sweep(scenario, {KEY: [0, 0.01, 0.1], "scheme": ["cmt", "cmt-pf"]}, 4, cache=None)


def planted(made: Results, gains: dict[float, list[float]]) -> Results:
    """Returns results with 1000 kbit/s for cmt, and this gain in per cent for cmt-pf, for each point and seed."""
    frame = made.runs.select([KEY, "scheme", "seed"]).to_pylist()
    values = [
        1000.0 * (1 + (gains[row[KEY]][row["seed"] - 1] / 100 if row["scheme"] == "cmt-pf" else 0.0)) for row in frame
    ]
    at = made.runs.column_names.index("goodput_kbps")
    return replace(made, runs=made.runs.set_column(at, made.runs.schema.field(at), pa.array(values)))


LEVEL = [-1.0, 1.0, -2.0, 2.0]
AHEAD = [1.0, 1.2, 1.4, 1.2]
BEHIND = [-9.0, -10.0, -11.0, -10.0]


@pytest.mark.parametrize(
    ("gains", "said"),
    [
        ((LEVEL, LEVEL, AHEAD), f"cmt-pf carries 1.2 ± 0.3 % more than cmt at {KEY} = 0.1 and as much elsewhere."),
        ((LEVEL, LEVEL, LEVEL), "cmt-pf carries as much as cmt at all 3 points."),
        ((AHEAD, AHEAD, AHEAD), "cmt-pf carries 1.2 % more than cmt at all 3 points."),
        (
            (AHEAD, BEHIND, LEVEL),
            f"cmt-pf carries 1.2 ± 0.3 % more than cmt at {KEY} = 0, 10 ± 1.3 % less at {KEY} = 0.01 and as much "
            "elsewhere.",
        ),
        (
            (BEHIND, BEHIND, AHEAD),
            f"cmt-pf carries 1.2 ± 0.3 % more than cmt at {KEY} = 0.1 and 10 % less at {KEY} = 0 and at {KEY} = 0.01.",
        ),
    ],
)
def test_answer_names_where_a_scheme_is_ahead_behind_and_level(
    made: Results, gains: tuple[list[float], ...], said: str
) -> None:
    assert answer(planted(made, dict(zip((0.0, 0.01, 0.1), gains, strict=True))), "cmt") == (said,)


def test_one_seed_is_no_evidence_and_one_scheme_has_no_rival(made: Results) -> None:
    scenario = ab.Scenario.parse(LOSSES).with_values({"run.duration": "1 s"})
    single = ab.run(scenario, schemes=["cmt", "sctp"], seeds=1)
    first, said = answer(single, "cmt")
    assert re.fullmatch(r"Two paths carry \d\.\d times as much as one \(cmt beside sctp\)\.", first)
    assert said.startswith("sctp carries ")
    assert "less than cmt" in said
    assert said.endswith("That is of one seed each, which is no evidence.")
    (alone,) = answer(ab.run(scenario, schemes=["cmt"], seeds=2), None)
    assert alone.startswith("The goodput of cmt is ")
    assert answer(replace(made, runs=made.runs.slice(0, 0)), "cmt") == ()


def test_a_report_begins_with_it(made: Results, tmp_path: Path) -> None:
    page = ab.report(made, tmp_path / "report.html").read_text(encoding="utf-8")
    (said,) = answer(made, "cmt")
    assert page.index(said) < page.index("<h2>Results</h2>")


@pytest.mark.parametrize("baseline", ["cmt", "sctp"])
def test_two_paths_beside_one_come_first_in_plain_words(baseline: str) -> None:
    scenario = ab.Scenario.parse(LOSSES).with_values({"run.duration": "1 s"})
    results = ab.sweep(scenario, {KEY: [0, 0.1], "scheme": ["sctp", "cmt"]}, 2, cache=None)
    first, *others = answer(results, baseline)
    pattern = r"Two paths carry (\S+)(?: to (\S+))? times as much as one \(cmt beside sctp, over 2 points\)\."
    said = re.fullmatch(pattern, first)
    assert said is not None, first
    means = results.to_pandas().groupby([KEY, "scheme"])["goodput_kbps"].mean().unstack()
    ratios = means["cmt"] / means["sctp"]
    low, high = f"{ratios.min():.2g}", f"{ratios.max():.2g}"
    assert (said[1], said[2] or said[1]) == (low, high)
    assert len(others) == 1


def test_one_path_in_all_has_no_sentence_about_several() -> None:
    text = LOSSES[: LOSSES.rindex("[[path]]")]
    scenario = ab.Scenario.parse(text).with_values({"run.duration": "1 s"})
    (said,) = answer(ab.run(scenario, schemes=["cmt", "sctp"], seeds=2), "cmt")
    assert said.startswith("sctp carries ")
