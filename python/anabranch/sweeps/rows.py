"""Conversion of the figures of runs, as they arrive, to tables sorted by position."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anabranch.results import TABLES, Table
from anabranch.results.delivery import delivery_figures
from anabranch.results.schema import FIGURES, schema
from anabranch.sweeps.grid import Grid
from anabranch.values import in_column, kind

# Maximum number of rows as Python objects, which take ten times the memory of columns.
_WAITING = 1024
_POSITION = pa.field("position", pa.int64(), nullable=False)


class Rows:
    """Collects the figures of runs in any order."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._waiting: dict[Table, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
        self._columns: dict[Table, list[pa.RecordBatch]] = {table: [] for table in TABLES}
        self.runs = 0

    def add(self, position: int, text: str) -> dict[str, Any]:
        """Adds a run's figures of the native module or the cache, and returns the row of table `runs`.

        Raises `ValueError` or `LookupError` if they are not those of this run.
        """
        figures = json.loads(text)
        cell, seed = self._grid.cell_of(position), self._grid.seed_of(position)
        if (figures["scheme"], figures["seed"]) != (cell.label, seed):
            raise ValueError("these are the figures of another run")
        run = _run_row(figures)
        paths, flows = _path_rows(figures), _flow_rows(figures)
        self._waiting["runs"].append((position, *run.values()))
        self._waiting["paths"] += [(position, *row) for row in paths]
        self._waiting["flows"] += [(position, *row) for row in flows]
        self.runs += 1
        if len(self._waiting["runs"]) >= _WAITING:
            self._settle()
        return run

    def _settle(self) -> None:
        for table, rows in self._waiting.items():
            if rows:
                fields = pa.schema([_POSITION, *FIGURES[table]])
                columns = [
                    pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), fields, strict=True)
                ]
                self._columns[table].append(pa.record_batch(columns, schema=fields))
                rows.clear()

    def tables(self) -> dict[Table, pa.Table]:
        """Returns the three tables of the collected runs. Call it once, since it hands the data over."""
        self._settle()
        identity = _Identity(self._grid, self._columns["runs"])
        return {table: self._table(table, identity) for table in TABLES}

    def _table(self, table: Table, identity: _Identity) -> pa.Table:
        figures = pa.Table.from_batches(self._columns.pop(table), pa.schema([_POSITION, *FIGURES[table]]))
        positions = figures["position"].to_numpy()
        # A stable sort keeps the order of paths and flows within a run.
        order = np.argsort(positions, kind="stable")
        names = identity.of(positions[order])
        figures = figures.drop_columns("position").take(pa.array(order))
        return pa.table([*names, *figures.columns], schema=schema(table, self._grid.over))


class _Identity:
    """Columns that identify the run of a row, once for each run."""

    def __init__(self, grid: Grid, batches: list[pa.RecordBatch]) -> None:
        positions = [batch["position"].to_numpy() for batch in batches]
        self._runs = np.sort(np.concatenate([np.empty(0, np.int64), *positions]))
        cell_of = pa.array(self._runs // len(grid.seeds))
        seed_of = pa.array(self._runs % len(grid.seeds))
        keys = pa.array((grid.key_of(int(position)) for position in self._runs), pa.string(), size=len(self._runs))
        self._columns: list[pa.Array] = [keys]
        for at, values in enumerate(grid.over.values()):
            of = kind(values)
            of_cells = pa.array([in_column(grid.points[cell.point].values[at], of) for cell in grid.cells])
            self._columns.append(of_cells.take(cell_of))
        self._columns.append(pa.array([cell.label for cell in grid.cells], pa.string()).take(cell_of))
        self._columns.append(pa.array(grid.seeds, pa.int64()).take(seed_of))

    def of(self, positions: npt.NDArray[np.int64]) -> list[pa.Array]:
        """Returns the columns for rows of the runs at these positions."""
        rows = pa.array(np.searchsorted(self._runs, positions))
        return [column.take(rows) for column in self._columns]


def _run_row(figures: dict[str, Any]) -> dict[str, Any]:
    # A run with one flow has no Jain's index.
    return {name: figures.get(name) if name == "jain_index" else figures[name] for name in FIGURES["runs"].names}


def _path_rows(figures: dict[str, Any]) -> list[tuple[Any, ...]]:
    names = ("name", *FIGURES["paths"].names[1:])
    return [tuple(path[name] for name in names) for path in figures["paths"]]


def _flow_rows(figures: dict[str, Any]) -> list[tuple[Any, ...]]:
    names = ("name", "scheme", "goodput_kbps", "delivered_bytes", "transfer_s", "intact", "failure")
    return [(*(flow[name] for name in names), *delivery_figures(flow).values()) for flow in figures["flows"]]
