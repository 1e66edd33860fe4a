"""Results of a sweep: three tidy tables, and a manifest of the scenario, the grid and the engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from anabranch import _native
from anabranch.counting import counted
from anabranch.errors import ResultsError
from anabranch.values import Value, literal, plain

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

    from anabranch.results.effort import Effort

__all__ = ["FORMAT", "TABLES", "Results", "Table"]

FORMAT: Final = "anabranch results 1"
"""Value of `format` in a manifest."""

Table: TypeAlias = Literal["runs", "paths", "flows"]

TABLES: Final[tuple[Table, ...]] = ("runs", "paths", "flows")


@dataclass(frozen=True, slots=True, repr=False)
class Results:
    """Runs of a sweep as three Arrow tables, sorted by the place of their point in the grid, scheme and seed.

    `runs` has a row for each run, `paths` one for each run and path, `flows` one for each run and flow. All three begin
    with `run` (the key of the run, 64 hexadecimal digits), a column for each swept key under the key's own name,
    `scheme` and `seed`, so they can be joined by `run`. Figures are those of the book's chapter "Figures of a run",
    with their units in their names. The content depends on scenario, grid, seeds and engine only, and not on the time,
    place or number of workers.

    `manifest` is the content of `manifest.json`: `format`, `version`, `commit` and `fingerprint` of the engine;
    `scenario` (canonical TOML, with every default), `scenario_name`; `source` (the given scenario) and `set` (values
    changed in it); `over` (each swept key with its values, in order), `together` (lists of keys that were swept side by
    side), `schemes`, `seeds` (with a stopping rule, the maximum), `precision` (the stopping rule, or null) and
    `missing` (requested runs that are missing: more than 0 only if the sweep was stopped).

    `effort` has the counts of computed and cached runs, if this comes from a sweep. It is not written.

        results = anabranch.sweep("two-path.toml", over={"path.path-2.loss": [0, 0.01]}, seeds=20)
        frame = results.to_pandas()
        frame.groupby(["path.path-2.loss", "scheme"]).goodput_kbps.mean()
        results.write("out/losses")
    """

    runs: pyarrow.Table
    paths: pyarrow.Table
    flows: pyarrow.Table
    manifest: dict[str, Any]
    effort: Effort | None = field(default=None, compare=False)

    @property
    def over(self) -> list[str]:
        """Swept keys in their given order."""
        return list(self.manifest["over"])

    @property
    def schemes(self) -> list[str]:
        """Schemes in their given order."""
        return list(self.manifest["schemes"])

    def to_arrow(self, table: Table = "runs") -> pyarrow.Table:
        """Returns a table: `"runs"`, `"paths"` or `"flows"`. Raises `ResultsError` for any other name."""
        if table not in TABLES:
            raise ResultsError(f"unknown table `{table}`; choose one of: {', '.join(TABLES)}")
        chosen: pyarrow.Table = getattr(self, table)
        return chosen

    def to_pandas(self, table: Table = "runs") -> pandas.DataFrame:
        """Returns a table as a pandas frame.

        The table begins with the columns that differ between rows, such as a swept key, scheme and seed. Columns with
        one value for all rows, and `run`, come last.
        """
        from anabranch.results.overview import varying_first

        chosen = self.to_arrow(table)
        parts = [part for part in ("path", "flow") if part in chosen.column_names]
        return varying_first(chosen.to_pandas(), [*self.over, "scheme", "seed", *parts])

    def summary(self, metric: str = "goodput_kbps") -> pandas.DataFrame:
        """Returns means of a metric with their 95 % intervals as text: a row for each point, a column for each scheme.

        `anabranch.statistics.summary` returns numbers and other intervals. Raises `StatisticsError`.
        """
        from anabranch.results.overview import means

        return means(self, metric)

    def plot(self, metric: str = "goodput_kbps", **options: Any) -> Axes:
        """Draws a metric over the swept key, or as bars if nothing numeric was swept.

        `options` are those of `anabranch.plot_metric` or `plot_bars`, such as `x`, `at`, `title` and `ax`. Raises
        `FigureError`.
        """
        from anabranch.results.overview import plot

        return plot(self, metric, **options)

    def report(self, out: str | os.PathLike[str] = "report.html", **options: Any) -> Path:
        """Writes a report as one HTML file and returns its path: see `anabranch.report`."""
        from anabranch import public

        written: Path = public("report")(self, out, **options)
        return written

    def _repr_html_(self) -> str:
        """Returns the view in a notebook: means with intervals."""
        from anabranch.results.overview import as_html

        return as_html(self, "goodput_kbps")

    def __repr__(self) -> str:
        swept = f" over {', '.join(self.over)}" if self.over else ""
        name, schemes = self.manifest["scenario_name"], ", ".join(self.schemes)
        return f"<Results of {name}: {counted(self.runs.num_rows, 'run')} of {schemes}{swept}>"

    def to_polars(self, table: Table = "runs") -> polars.DataFrame:
        """Returns a table as a polars frame, with the same columns. Needs `pip install anabranch[polars]`."""
        chosen = self.to_arrow(table)
        try:
            import polars
        except ImportError as error:
            raise ResultsError("polars is not installed: pip install 'anabranch[polars]'") from error
        return cast("polars.DataFrame", polars.from_arrow(chosen))

    def scenario_at(self, point: Mapping[str, object]) -> str:
        """Returns the canonical scenario of one point of the grid, to repeat one of its runs.

        `point` has a value for each swept key, as in a row of the tables: `{"path.path-2.loss": 0.01}`. Raises
        `ResultsError` for keys that were not swept or are missing, and `ScenarioError` for invalid values.
        """
        if set(point) != set(self.over):
            raise ResultsError(
                f"a point has a value for each of: {', '.join(self.over) or 'no key'}; got: {', '.join(point)}"
            )
        given: list[tuple[str, Value]] = [(key, value) for key, value in self.manifest["set"]]
        given += [(key, self._given(key, point[key])) for key in self.over]
        settings = [(key, literal(value)) for key, value in given]
        return _native.resolve(self.manifest["source"], self.manifest["scenario_name"], settings)

    def _given(self, key: str, cell: object) -> Value:
        """Returns the value that the sweep was given. A column of text contains its TOML."""
        value = plain(cell)
        for given in self.manifest["over"][key]:
            if given == value or (not isinstance(given, str) and literal(given) == value):
                chosen: Value = given
                return chosen
        return value

    def write(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes `runs.parquet`, `paths.parquet`, `flows.parquet` and, when these are complete, `manifest.json`.

        Makes the folder if needed. Results in it are replaced, each file atomically. Raises `ResultsError` if the
        folder has other content and no results, unless `overwrite`, and if it cannot be written to.
        """
        from anabranch.results.files import write

        write(self, Path(folder), overwrite=overwrite)

    @staticmethod
    def read(folder: str | os.PathLike[str]) -> Results:
        """Reads results that `write` has written.

        Raises `ResultsError`, which names the file and a remedy, if a file is missing, damaged or of another format.
        """
        from anabranch.results.files import read

        return read(Path(folder))
