"""Study choice: its tables, maps and files, and the chapter about it."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from book import BOOK
from choice_planted import PLANS, SCHEMES, planted, planted_shares
from matplotlib.colors import to_hex
from studies.__main__ import main
from studies.choice import explaining, making, maps
from studies.choice.choosing import ranking
from studies.choice.explaining import CASES, Case, cell, explained
from studies.choice.judging import METRIC, OUTSIDE, judge
from studies.choice.making import QUICK_OVER, Made, make, quicker, run_plans
from studies.choice.naming import LETTER_IN, LINE_IN, Box, places
from studies.choice.samples import samples
from studies.choice.sharing import taken
from studies.choice.wording import file_name, ratio_text, short, signed_percent
from studies.results import MARK, parts_of
from test_choice_judging import CLEAR

import anabranch
from anabranch.errors import RunError
from anabranch.experiments.pages.document import markdown
from anabranch.experiments.sweeps import SweepOptions
from anabranch.figures import save
from anabranch.sweeps.plan import read_plan

CHAPTER = (BOOK / "which-scheme.md").read_text(encoding="utf-8")
STORED = parts_of(BOOK.parent / "results", "choice")
SHARES = {"sctp": 3000.0, "cmt": 1500.0, "cmt-pf": 1000.0, "mptcp-ns2": 500.0}
# One cell with a tie, one in which another scheme wins, and one that differs only in schemes that cannot win.
ELSEWHERE = {0: {**CLEAR, "cmt-pf": CLEAR["cmt"]}, 5: {**CLEAR, "sctp": [8000, 8080, 7960, 8040]}}


SHORT_CASE = Case({**cell("32 KiB", 1, "200 ms", 0.01), "run.duration": "3 s", "run.warmup": "0 s"}, ("cmt", "sctp"))


@pytest.fixture(scope="module")
def looked_into() -> pd.DataFrame:
    return explained(PLANS / "two-links.toml", [SHORT_CASE])


@pytest.fixture(scope="module")
def made(looked_into: pd.DataFrame) -> Made:
    return make(planted(CLEAR, ELSEWHERE), planted_shares(SHARES), looked_into)


def text_of(made: Made, part: str) -> str:
    return markdown(made.parts[part]).rstrip()


def line(text: str, start: str) -> str:
    """Returns the only line of a table that begins with this text."""
    (found,) = [line for line in text.splitlines() if line.startswith(start)]
    return found


def test_the_table_of_cells_names_winners_ties_gains_and_limits(made: Made) -> None:
    assert line(text_of(made, "cells"), "| 32 KiB | 1 | 1 | 0 % |") == (
        "| 32 KiB | 1 | 1 | 0 % | `cmt` | 4010 ± 41 | 4010 | +0.0 % | 61 % | `cmt-pf` |"
    )
    assert line(text_of(made, "cells"), "| 1 MiB | 1 | 1 | 5 % |").startswith(
        "| 1 MiB | 1 | 1 | 5 % | `sctp` | 8020 ± 82 | 4010 | +100.0 % | 111 % | none |"
    )


def test_the_table_of_advice_is_computed(made: Made) -> None:
    listed = text_of(made, "list").splitlines()
    assert len(listed) == len(made.frames["advice"])
    assert all(each.startswith("* ") and each.endswith(" of the best") for each in listed)
    assert any(each.startswith("* 1 MiB, round trips alike, much loss: `") for each in listed)
    assert line(text_of(made, "advice"), "| 1 MiB | alike | much |") == (
        "| 1 MiB | alike | much | `sctp` | none | 100 % | 100 % | 111 % | 50 % | `sctp` | 100 % | 50 % |"
    )
    assert line(text_of(made, "advice"), "| 32 KiB | alike | little |").startswith(
        "| 32 KiB | alike | little | `cmt` | `cmt-pf` | 100 % |"
    )


def test_advice_for_shared_links_omits_unfair_schemes(made: Made) -> None:
    """Expects `sctp`, although it is slower, since the other flow keeps a third of the link beside `cmt`."""
    row = line(text_of(made, "advice"), "| 32 KiB | unlike | little |").split(" | ")
    assert row[3] == "`cmt`"
    assert row[-4:-1] == ["33 %", "`sctp`", "75 %"]


def test_single_run_is_explained_by_its_trace(looked_into: pd.DataFrame, made: Made) -> None:
    cmt, sctp = looked_into.to_dict("records")
    assert (cmt["rtt_ratio"], cmt["rate_ratio"], cmt["loss_percent"]) == (10, 0.25, 1)
    assert cmt["goodput_kbps"] < sctp["goodput_kbps"]
    assert cmt["used_2"] > sctp["used_2"] == 0
    assert 0 < cmt["closed"] <= 1
    assert "| 32 KiB, rate x 1/4, round trip x 10, loss 1 % | `sctp` |" in text_of(made, "explained")


def test_cell_without_explanation_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(RunError, match="explain --json"):
        explained(PLANS / "two-links.toml", [SHORT_CASE])


def test_cases_are_cells_of_the_grid() -> None:
    over = read_plan(PLANS / "grid.toml").over
    for case in CASES:
        for keys, values in over.items():
            if keys != "scheme":
                given = [case.settings[key] for key in ((keys,) if isinstance(keys, str) else keys)]
                assert (given if isinstance(keys, tuple) else given[0]) in values, keys


def test_table_of_schemes_has_share_left_to_others(made: Made) -> None:
    row = line(text_of(made, "schemes"), "| `cmt` |").split(" | ")
    assert row[1:3] == ["7", "6"]
    assert row[5:8] == ["+0.0 %", "0 %", "0 %"]
    assert row[-1] == "33.4 ± 0.1 % |"
    assert "`mptcp-ns2` (cannot win)" in text_of(made, "schemes").splitlines()[-1]


def test_the_chapter_begins_with_the_answer_in_three_sentences(made: Made) -> None:
    assert text_of(made, "short").strip() == (
        "The receive buffer decides first: with 32 KiB use `cmt` (best in 4 of 4 kinds of links), "
        "with 1 MiB use `cmt` (best in 3 of 4 kinds of links). "
        "If nothing is known of the links, `cmt` comes closest to the best scheme: it has 94 % of the best goodput on "
        "average and 50 % at worst. `cmt` has 100 % with 32 KiB, 88 % with 1 MiB."
    )


def test_value_above_the_limit_is_reported(made: Made) -> None:
    room = text_of(made, "room")
    assert room.startswith(
        "1 of 32 means are above the limit, and 1 above the shared limit, but for those of `mptcp-ns2`. "
    )
    assert "The highest is 110.6 % of the limit. Of single runs, 4 of 96 are above it, by 11.4 % at most." in room
    assert "| 32 KiB | 1:1 | 61 % | 61 % | 61 % | 61 % |" in text_of(made, "room")


def test_extent_of_both_plans_is_counted(made: Made) -> None:
    assert text_of(made, "grid").startswith(
        "128 runs of 8 cells, 4 schemes and 4 seeds, and 16 runs with 4 seeds over a shared link."
    )


def texts(figure: maps.Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_map_of_winners_has_name_ties_and_gain_in_each_cell(made: Made) -> None:
    written = texts(made.figures["winners"])
    assert len(written) == 8
    assert written.count("cmt\n0 %") == 6
    assert "cmt\n0 % &1" in written
    assert "sctp\nx2.0" in written


def test_a_square_has_the_colour_of_its_value(made: Made) -> None:
    squares = [patch for axes in made.figures["gain-sctp"].axes for patch in axes.patches]
    colours = [to_hex(square.get_facecolor()) for square in squares]
    # A quarter less in seven cells, and twice as much in one.
    assert sorted(colours) == ["#4f93c6", *["#f0b878"] * 7]
    weights = {text.get_text(): text.get_weight() for axes in made.figures["gain-sctp"].axes for text in axes.texts}
    assert weights == {"-25 %": "bold", "x2.0": "normal"}


def test_the_map_of_limits_has_the_best_and_cmt_in_each_cell(made: Made) -> None:
    assert "111 %\n55 %" in texts(made.figures["limits"])


def test_a_map_of_gains_has_one_square_for_each_cell(made: Made) -> None:
    assert texts(made.figures["gain-sctp"]).count("-25 %") == 7
    assert len(texts(made.figures["gains"])) == 8
    own = {name for name in made.figures if name.startswith("gain-")}
    assert own == {"gain-sctp", "gain-cmt-pf", "gain-mptcp-ns2"}


def test_letters_are_large_enough_to_be_read(made: Made) -> None:
    for figure in made.figures.values():
        assert figure.get_figwidth() == pytest.approx(7.16)
        for axes in figure.axes:
            assert all(text.get_fontsize() >= 6.5 for text in [*axes.texts, *axes.get_xticklabels()])


def test_every_scheme_that_can_win_is_named_in_the_trade_off(made: Made) -> None:
    assert sorted(texts(made.figures["trade-off"])) == sorted(short(name) for name in SCHEMES if name not in OUTSIDE)


def test_the_same_results_give_the_same_bytes(made: Made, tmp_path: Path) -> None:
    judged = judge(planted(CLEAR, ELSEWHERE))
    first = save(made.figures["winners"], tmp_path / "first.svg").read_bytes()
    assert save(maps.winner_map(judged), tmp_path / "second.svg").read_bytes() == first
    ranked = ranking(samples(planted(CLEAR, ELSEWHERE).to_pandas(), planted(CLEAR).over, METRIC), judged)
    again = save(maps.trade_off(ranked, taken(planted_shares(SHARES))), tmp_path / "again.svg").read_bytes()
    assert save(made.figures["trade-off"], tmp_path / "trade-off.svg").read_bytes() == again


def test_numbers_and_names_are_short_enough_for_a_cell() -> None:
    assert [signed_percent(part) for part in (0.231, -0.004, -0.5, 0.99, 1.0, 5.12)] == [
        "+23 %",
        "0 %",
        "-50 %",
        "+99 %",
        "x2.0",
        "x6.1",
    ]
    assert [ratio_text(ratio) for ratio in (0.25, 1.0, 4.0)] == ["1/4", "1", "4"]
    longest = max((short(scheme) for scheme in _grid_schemes()), key=len)
    assert len(longest) <= 9
    assert len({short(scheme) for scheme in _grid_schemes()}) == len(_grid_schemes())
    assert file_name("cmt+rack") == "cmt-rack"


def _grid_schemes() -> list[str]:
    listed = read_plan(PLANS / "grid.toml").over["scheme"]
    return [name for scheme in listed for name in (anabranch.schemes().schemes.names if scheme == "all" else [scheme])]


def test_grid_and_shared_link_have_every_scheme_and_component() -> None:
    components = [f"cmt+{name}" for name in anabranch.schemes().components.names]
    assert set(_grid_schemes()) == {*anabranch.schemes().schemes.names, *components, "mptcp-ns2(shared-window=true)"}
    assert read_plan(PLANS / "sharing.toml").over["scheme"] == read_plan(PLANS / "grid.toml").over["scheme"]


def test_the_quick_grid_is_part_of_the_full_one() -> None:
    grid, shared = read_plan(PLANS / "grid.toml"), read_plan(PLANS / "sharing.toml")
    for key, values in QUICK_OVER.items():
        plan = grid if key in grid.over else shared
        assert set(values) <= set(plan.over[key]), key
    assert quicker(grid).over["scheme"] == grid.over["scheme"]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plans with one or two cells and runs of two seconds."""
    schemes = 'schemes = ["sctp", "cmt"]\nseeds = 2\n'
    settings = '[set]\n"run.duration" = "2 s"\n"run.warmup" = "0 s"\n'
    for name, scenario, over in (
        ("grid", "two-links", '"association.recv_buffer" = ["32 KiB"]\n"path.path-2.loss.rate" = [0, 0.05]'),
        ("sharing", "shared", '"path.right.delay" = ["5 ms"]'),
    ):
        text = f'scenario = "{PLANS / scenario}.toml"\n{schemes}[over]\n{over}\n{settings}'
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "two-links.toml").write_text((PLANS / "two-links.toml").read_text())
    monkeypatch.setattr(making, "PLANS", tmp_path)
    monkeypatch.setattr(explaining, "CASES", (SHORT_CASE,))
    return tmp_path


def test_program_writes_tables_maps_and_stored_results(tiny: Path) -> None:
    out, store = tiny / "out", tiny / "results" / "choice.json.xz"
    arguments = ["choice", "--out", str(out), "--cache", str(tiny / "cache"), "--store", str(store), "--quiet"]
    assert main(arguments) == 0
    assert {path.name for path in out.iterdir()} == {
        *("grid", "sharing", "maps", "summary.md"),
        *("cells.csv", "advice.csv", "schemes.csv", "sharing.csv", "explained.csv"),
    }
    assert (out / "maps" / "gain-sctp.svg").is_file()
    summary = (out / "summary.md").read_text()
    assert "| 32 KiB | 1 | 1 | 5 % |" in summary
    stored = parts_of(tiny / "results", "choice")
    assert stored["made"].endswith(": 12 runs.")
    assert all(part in summary for name, part in stored.items() if name != "made")


def test_the_program_takes_finished_runs_from_the_cache(tiny: Path) -> None:
    first = [results.effort for results in run_plans(False, SweepOptions(tiny / "cache", progress=False))]
    again = [results.effort for results in run_plans(False, SweepOptions(tiny / "cache", progress=False))]
    assert [(effort.computed, effort.cached) for effort in first if effort] == [(8, 0), (4, 0)]
    assert [(effort.computed, effort.cached) for effort in again if effort] == [(0, 8), (0, 4)]


def test_ctrl_c_prints_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt("3 of 9 runs are finished and kept in CACHE")

    monkeypatch.setattr("studies.choice.command.run_plans", stopped)
    assert main(["choice", "--out", str(tmp_path / "out")]) == 130
    assert "3 of 9 runs are finished and kept in CACHE" in capsys.readouterr().err


def test_only_the_full_grid_is_stored(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["choice", "--quick", "--out", str(tmp_path), "--store", str(tmp_path / "choice.json.xz")]) == 2
    assert "leave --quick out" in capsys.readouterr().err


def test_chapter_has_every_stored_part_and_existing_pictures() -> None:
    assert {part for name, part in MARK.findall(CHAPTER) if name == "choice"} == set(STORED)
    shown = set(re.findall(r"\]\(which-scheme/([\w.+-]+\.svg)\)", CHAPTER))
    assert shown == {path.name for path in (BOOK / "which-scheme").iterdir()}


def test_prose_quotes_only_figures_of_tables_of_the_chapter() -> None:
    tables = "\n".join([*STORED.values(), *(line for line in CHAPTER.splitlines() if line.startswith("|"))])
    prose = "\n".join(line for line in CHAPTER.splitlines() if not line.startswith("|"))
    quoted = re.findall(r"(?<![\w.])[+-]?\d+(?:\.\d+)?(?= (?:%|kbit/s))|(?<!\w)x\d+\.\d\b", prose)
    known = set(re.findall(r"(?<![\w.])[+-]?\d+(?:\.\d+)?|x\d+\.\d", tables))
    known |= {number.lstrip("+") for number in known}
    assert len(quoted) > 10
    assert [number for number in quoted if number not in known] == []


def test_names_of_points_that_lie_close_do_not_cover_each_other() -> None:
    points = [(1.0 + 0.01 * number, 1.0) for number in range(12)]
    names = [f"name-{number}" for number in range(12)]
    frame = Box(0, 0, 4, 2)
    boxes = [
        Box(x - LETTER_IN * len(name) / 2, y - LINE_IN / 2, x + LETTER_IN * len(name) / 2, y + LINE_IN / 2)
        for (x, y), name in zip(places(points, names, frame), names, strict=True)
    ]
    assert all(box.inside(frame) for box in boxes)
    assert not any(one.meets(other) for place, one in enumerate(boxes) for other in boxes[:place])
    alone = places([(1.0, 1.0)], ["a"], frame)[0]
    assert abs(alone[0] - 1) < 0.2
    assert abs(alone[1] - 1) < 0.2
