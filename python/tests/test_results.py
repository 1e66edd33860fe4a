"""Results: tables, files, and damaged files."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sweep_support import rows, same, write_scenario

from anabranch.errors import ResultsError, ScenarioError
from anabranch.results import Results
from anabranch.sweeps import sweep


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    scenario = write_scenario(tmp_path_factory.mktemp("scenario"))
    return sweep(scenario, over={"path.path-2.loss": [0, 0.02]}, cache=None)


def test_each_table_begins_with_the_key_of_a_run(results: Results) -> None:
    for table in ("runs", "paths", "flows"):
        assert results.to_arrow(table).column_names[:4] == ["run", "path.path-2.loss", "scheme", "seed"]
    assert results.runs.num_rows == 2 * 2 * 3
    assert results.paths.num_rows == 2 * results.runs.num_rows
    assert results.flows.num_rows == results.runs.num_rows
    keys = results.runs["run"].to_pylist()
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 64 for key in keys)


def test_rows_are_sorted_by_point_scheme_and_seed(results: Results) -> None:
    expected = [(loss, scheme, seed) for loss in (0, 0.02) for scheme in ("cmt", "cmt-pf") for seed in (1, 2, 3)]
    assert rows(results.runs, "path.path-2.loss", "scheme", "seed") == expected
    assert rows(results.paths, "path")[:4] == [("path-1",), ("path-2",), ("path-1",), ("path-2",)]


def test_shares_of_the_paths_of_a_run_add_up_to_one(results: Results) -> None:
    shares = results.to_pandas("paths").groupby("run").share.sum()
    assert shares.between(1 - 1e-12, 1 + 1e-12).all()


def test_pandas_and_polars_have_the_same_columns_as_arrow(results: Results) -> None:
    assert set(results.to_pandas("paths").columns) == set(results.paths.column_names)
    assert results.to_polars("flows").columns == results.flows.column_names
    assert results.to_pandas().goodput_kbps.tolist() == results.runs["goodput_kbps"].to_pylist()


def test_polars_is_asked_for_by_name_where_it_is_missing(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ResultsError, match=r"pip install 'anabranch\[polars\]'"):
        results.to_polars()


def test_an_unknown_table_is_refused(results: Results) -> None:
    with pytest.raises(ResultsError, match="unknown table `series`; choose one of: runs, paths, flows"):
        results.to_arrow("series")  # type: ignore[arg-type]


def test_written_results_are_read_unchanged(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "out")
    again = Results.read(tmp_path / "out")
    assert same(again, results)
    assert again == results
    assert again.over == ["path.path-2.loss"]
    assert again.schemes == ["cmt", "cmt-pf"]
    assert again.effort is None


def test_manifest_has_inputs_and_version(results: Results) -> None:
    manifest = results.manifest
    assert manifest["over"] == {"path.path-2.loss": [0, 0.02]}
    assert manifest["seeds"] == [1, 2, 3]
    assert manifest["precision"] is None
    assert manifest["missing"] == 0
    assert manifest["scenario_name"] == "two"
    assert len(manifest["fingerprint"]) == 64
    assert 'recv_buffer = "64 KiB"' in manifest["scenario"]


def test_a_point_can_be_made_again_from_the_results_alone(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "out")
    row = results.to_pandas().iloc[-1]
    text = Results.read(tmp_path / "out").scenario_at({"path.path-2.loss": row["path.path-2.loss"]})
    (tmp_path / "point.toml").write_text(text)
    again = sweep(tmp_path / "point.toml", {"scheme": [row.scheme]}, seeds=[int(row.seed)], cache=None)
    assert again.runs["goodput_kbps"].to_pylist() == [row.goodput_kbps]
    with pytest.raises(ResultsError, match=r"a value for each of: path\.path-2\.loss"):
        results.scenario_at({})
    with pytest.raises(ScenarioError, match="out of range"):
        results.scenario_at({"path.path-2.loss": 7})


def test_a_point_with_a_table_for_a_value_can_be_made_again(tmp_path: Path) -> None:
    losses = [0.01, {"model": "gilbert-elliott", "p": 0.01, "r": 0.3}]
    results = sweep(write_scenario(tmp_path), {"path.path-1.loss": losses}, 1, cache=None)
    cells = dict.fromkeys(results.runs["path.path-1.loss"].to_pylist())
    assert list(cells) == ["0.01", '{model = "gilbert-elliott", p = 0.01, r = 0.3}']
    texts = [results.scenario_at({"path.path-1.loss": cell}) for cell in cells]
    assert "gilbert-elliott" not in texts[0]
    assert 'model = "gilbert-elliott", p = 0.01, r = 0.3' in texts[1]


def test_results_replace_results(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path)
    (tmp_path / "report.html").write_text("made of these results")
    results.write(tmp_path)
    assert same(Results.read(tmp_path), results)
    assert (tmp_path / "report.html").exists()


def test_folder_with_other_files_is_replaced_by_force_only(results: Results, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ResultsError, match=rf"{tmp_path}: has other files \(`thesis.tex`\)"):
        results.write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    results.write(tmp_path, overwrite=True)
    assert same(Results.read(tmp_path), results)


def test_folder_of_a_killed_writer_is_reused(results: Results, tmp_path: Path) -> None:
    (tmp_path / ".runs.parquet.0badcafe").write_bytes(b"half")
    (tmp_path / "paths.parquet").write_bytes(b"old")
    with pytest.raises(ResultsError, match=r"no manifest.json.*run the sweep again"):
        Results.read(tmp_path)
    results.write(tmp_path)
    assert same(Results.read(tmp_path), results)


def test_a_place_that_cannot_be_written_to_is_named(results: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match=rf"{tmp_path}/file/out: results cannot be written"):
        results.write(tmp_path / "file" / "out")


def test_a_disk_that_is_full_leaves_no_results_that_look_whole(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.write(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResultsError, match="No space left on device"):
        results.write(tmp_path)
    with pytest.raises(ResultsError, match=r"no manifest.json"):
        Results.read(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_folder_that_is_no_results_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=rf"{tmp_path}/none: does not exist"):
        Results.read(tmp_path / "none")
    with pytest.raises(ResultsError, match=rf"{tmp_path}: has no manifest.json"):
        Results.read(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(ResultsError, match="is not a manifest of results"):
        Results.read(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ResultsError, match=r"manifest.json: cannot be read"):
        Results.read(tmp_path)


@pytest.mark.parametrize("table", ["runs", "paths", "flows"])
def test_a_missing_table_is_named(results: Results, tmp_path: Path, table: str) -> None:
    results.write(tmp_path)
    (tmp_path / f"{table}.parquet").unlink()
    with pytest.raises(ResultsError, match=rf"{tmp_path}/{table}.parquet: is missing: run the sweep again"):
        Results.read(tmp_path)


def test_a_table_cut_short_anywhere_is_named(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path)
    path = tmp_path / "runs.parquet"
    whole = path.read_bytes()
    for length in (0, 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ResultsError, match=rf"{path}: is damaged"):
            Results.read(tmp_path)


def test_any_changed_byte_is_detected(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path)
    path = tmp_path / "runs.parquet"
    whole = path.read_bytes()
    found = 0
    for at in range(4, len(whole), 37):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            read = Results.read(tmp_path)
        except ResultsError as error:
            found += str(path) in str(error)
        else:
            # The remaining bytes are descriptions, such as the name of the writer.
            assert read.runs.equals(results.runs)
    assert found > 50


def test_a_table_of_another_sweep_is_noticed(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path)
    pq.write_table(results.runs.slice(1), tmp_path / "runs.parquet")
    with pytest.raises(ResultsError, match=r"runs.parquet: has 11 rows, but manifest.json lists 12"):
        Results.read(tmp_path)
    pq.write_table(results.runs.drop_columns("scheme"), tmp_path / "runs.parquet")
    with pytest.raises(ResultsError, match=r"runs.parquet: has no column `scheme`"):
        Results.read(tmp_path)
    swapped = results.runs.set_column(2, "scheme", results.runs["goodput_kbps"])
    texts = swapped.set_column(5, "goodput_kbps", results.runs["scheme"])
    pq.write_table(texts, tmp_path / "runs.parquet")
    with pytest.raises(ResultsError, match=r"runs.parquet: a column has another type"):
        Results.read(tmp_path)


def test_a_format_of_the_future_is_refused(results: Results, tmp_path: Path) -> None:
    results.write(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "format": "anabranch results 2"}))
    with pytest.raises(ResultsError, match=r"`format` is `anabranch results 2`, this version reads"):
        Results.read(tmp_path)
    path.write_text(json.dumps({**manifest, "over": []}))
    with pytest.raises(ResultsError, match="`over` is missing or is no dict"):
        Results.read(tmp_path)
