"""Study recorded: choice of sections, tables, command line."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from studies.__main__ import main
from studies.recorded.judging import directions, judge, median_of, ranking, short_text, worst
from studies.recorded.runs import X, Y, scenario_of
from studies.recorded.sections import DIRECTIONS, SECTION_S, choose

from anabranch.errors import AnabranchError

RECORDINGS = 6


def write(folder: Path, prefix: str, number: int, rows: list[tuple[float, str, str]]) -> None:
    own = folder / f"{prefix}_timediff"
    own.mkdir(parents=True, exist_ok=True)
    header = f"TIME_STAMP_x,{prefix}tput_x,TIME_STAMP_y,{prefix}tput_y"
    lines = [f"{at},{x},{at},{y}" for at, x, y in rows]
    (own / f"{prefix}_atnt_verizon_1_run_{number}.csv").write_text("\n".join([header, *lines, ""]))


def rows_of(seconds: float, scale: float, seed: int) -> list[tuple[float, str, str]]:
    draw = random.Random(seed)
    rates = [(draw.uniform(0.2, 1) * scale, draw.uniform(0.2, 1) * scale) for _ in range(int(seconds * 2))]
    return [(1000 + at / 2, f"{x:.3f}", f"{y:.3f}") for at, (x, y) in enumerate(rates)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Recordings of 70 s with rates below 2 Mbit/s in each direction."""
    folder = tmp_path / "data"
    for prefix in DIRECTIONS.values():
        for number in range(RECORDINGS):
            write(folder, prefix, number, rows_of(70, 2, number))
    return folder


def test_choice_is_reproducible_and_takes_one_section_per_recording(data: Path) -> None:
    chosen = choose(data, 4, seed=1)
    assert chosen == choose(data, 4, seed=1)
    assert chosen != choose(data, 4, seed=2)
    assert [section.direction for section in chosen] == ["uplink"] * 4 + ["downlink"] * 4
    recordings = [section.name.rsplit("-", 1)[0] for section in chosen]
    assert len(set(recordings)) == len(recordings)
    assert all(len(section.rates) == SECTION_S * 2 for section in chosen)


def test_archive_and_folder_give_equal_sections(data: Path, tmp_path: Path) -> None:
    archive = tmp_path / "data.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for each in data.rglob("*.csv"):
            file.write(each, each.relative_to(tmp_path))
    assert choose(archive, 3, seed=1) == choose(data, 3, seed=1)


@pytest.mark.parametrize(
    "rows",
    [
        [*rows_of(10, 2, 1), *[(at + 12, x, y) for at, x, y in rows_of(70, 2, 2) if at + 12 > 1015]][:60],
        rows_of(70, 0.9, 1),
        rows_of(70, 400, 1),
        rows_of(29, 2, 1),
        [(at, x, "") for at, x, _ in rows_of(70, 2, 1)],
        [(at, x, "nan") for at, x, _ in rows_of(70, 2, 1)],
    ],
    ids=["gap", "slow", "fast", "short", "one operator", "no number"],
)
def test_ineligible_recordings_are_left_out(tmp_path: Path, rows: list[tuple[float, str, str]]) -> None:
    for prefix in DIRECTIONS.values():
        write(tmp_path, prefix, 0, rows)
        write(tmp_path, prefix, 1, rows_of(40, 2, 1))
    assert {section.name for section in choose(tmp_path, 1, seed=1)} == {"UL-1-1-0s", "DL-1-1-0s"}
    with pytest.raises(AnabranchError, match="1 recordings of uplink are eligible, 2 needed"):
        choose(tmp_path, 2, seed=1)


def test_written_section_has_the_rates_of_its_recording(data: Path, tmp_path: Path) -> None:
    (section, *_) = choose(data, 1, seed=1)
    text = section.write(tmp_path).read_text()
    assert text.splitlines()[:2] == ["time,x_mbps,y_mbps", "0,{:g},{:g}".format(*section.rates[0])]
    scenario = scenario_of([X, Y], f"{section.name}.csv")
    assert [path.capacity.column for path in scenario.paths] == ["x_mbps", "y_mbps"]  # type: ignore[union-attr]


def test_missing_data_is_an_error_with_its_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recorded", "--data", str(tmp_path / "none"), "--out", str(tmp_path)]) == 1
    assert "git clone https://github.com/NUWiNS/pam2025-multi-carrier-dataset" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--quick", "--store", "x.json.xz"], "--store: takes the full study only"),
        (["--schemes", "sctp,cmt"], "--schemes: add `braid`"),
        (["--schemes", "sctq"], "sctq"),
    ],
)
def test_wrong_options_are_errors(data: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["recorded", "--data", str(data), "--quick", *words]) == 2
    assert says in capsys.readouterr().err


def test_quick_study_prints_and_writes_its_tables(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["recorded", "--data", str(data), "--quick", "--no-cache", "-q", "--out", str(out)]) == 0
    page = (out / "summary.md").read_text()
    assert page in capsys.readouterr().out
    assert "| both | " in page
    table = pd.read_csv(out / "sections.csv")
    assert set(table["scheme"]) == {"sctp", "cmt", "bonded", "braid"}
    assert len(table) == 6 * 4
    assert (table["alone_kbps"] > 500).all()


def runs(values: dict[str, list[float]]) -> pd.DataFrame:
    """Returns runs in which the better link alone has 1000 kbit/s in each section."""
    rows = [
        {
            "section": f"s{at}",
            "direction": "uplink",
            "scheme": scheme,
            "goodput_kbps": kbps,
            "subject_alone_kbps": 950.0,
            "alone_kbps": 1000.0,
        }
        for scheme, own in values.items()
        for at, kbps in enumerate(own)
    ]
    return judge(pd.DataFrame(rows))


def test_ranking_counts_sections_and_compares_pairs() -> None:
    judged = runs({"sctp": [500.0, 970.0, 960.0], "braid": [1000.0, 1940.0, 960.0]})
    assert [row[:2] + row[4:] for row in ranking(judged).rows] == [
        ["`braid`", "1.00", "2 of 3", ""],
        ["`sctp`", "0.96", "1 of 3", "2.00"],
    ]
    assert worst(judged, 2) == ["s2", "s0"]
    assert directions(judged).rows[-1] == ["both", "2 of 3", "1.00", "0.96", "3 of 3"]
    assert "`braid` has a median of 1.00 and reaches it in 67 % of the sections; the goal is 95 %." in short_text(
        judged
    )


def test_interval_of_the_median_covers_it_and_narrows_with_the_sample() -> None:
    few, many = (median_of([random.Random(at).random() for at in range(count)]) for count in (10, 200))
    for each in (few, many):
        assert each.low <= each.value <= each.high
    assert many.high - many.low < few.high - few.low
    assert str(median_of([2.0])) == "2.00"
