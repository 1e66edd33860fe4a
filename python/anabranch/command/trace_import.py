"""`anabranch trace import`: a table of a Parquet file, which scenarios and the other commands of `trace` read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.command.parser import Parser
from anabranch.errors import TraceError

if TYPE_CHECKING:
    import pyarrow as pa

_EXAMPLES = """Examples:
  Convert round-trip times and drop rates of a Starlink terminal:
    anabranch trace import starlink.parquet --time @timestamp --column latency_ms \\
        --column drop_rate --out starlink.csv
  Use them as delay of a link in a scenario, halved because they are round-trip times:
    delay_trace = { file = "starlink.csv", column = "latency_ms", scale = 0.5 }
"""


def main(arguments: Sequence[str]) -> int:
    """Writes the requested columns as CSV, and returns the exit status."""
    options = _parser().parse_args(arguments)
    table = _read(options.file, [options.time, *options.column])
    seconds = _seconds(options.file, table, options.time)
    columns = [_numbers(options.file, table, name) for name in options.column]
    header = ",".join(["seconds", *map(_header, options.column)])
    rows = [",".join(row) for row in zip(seconds, *columns, strict=True)]
    options.out.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="anabranch trace import",
        description="Convert columns of a Parquet file to a table with times in seconds, which links can follow.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="Parquet file with a row for each time")
    add("--time", metavar="COLUMN", required=True, help="column with times: seconds, time stamps, or text of ISO 8601")
    add("--column", metavar="COLUMN", action="append", required=True, help="column with values; can be repeated")
    add("--out", metavar="FILE", type=Path, required=True, help="table to write, .csv")
    return parser


def _read(file: Path, names: Sequence[str]) -> pa.Table:
    """Returns these columns. Other columns are not read, since they may have any size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with file.open("rb") as opened:
            parquet = pq.ParquetFile(opened, pre_buffer=False)
            present = parquet.schema_arrow.names
            for name in names:
                if name not in present:
                    raise TraceError(f"{file}: has no column `{name}`; its columns are {', '.join(present)}")
            return parquet.read(columns=list(names), use_threads=False)
    except pa.ArrowException as error:
        raise TraceError(f"{file}: is damaged or no Parquet file: {error}") from error


def _seconds(file: Path, table: pa.Table, name: str) -> list[str]:
    """Returns the times since the first row, which ascend."""
    import pandas as pd

    values = table.column(name).to_pandas()
    try:
        numeric = pd.api.types.is_numeric_dtype(values)
        stamps = (
            values
            if numeric
            else pd.to_datetime(values, utc=True, format=None if values.dtype.kind == "M" else "ISO8601")
        )
    except (ValueError, TypeError) as error:
        raise TraceError(f"{file}: column `{name}`: no times in seconds or ISO 8601: {error}") from error
    if len(values) == 0 or bool(stamps.isna().any()):
        raise TraceError(f"{file}: column `{name}`: {'has no rows' if len(values) == 0 else 'has rows without a time'}")
    passed = stamps - stamps.iloc[0]
    passed_s = passed if numeric else passed.dt.total_seconds()
    return [_decimal(file, name, row, float(value)) for row, value in enumerate(passed_s)]


def _numbers(file: Path, table: pa.Table, name: str) -> list[str]:
    """Returns the values of a column, empty where nothing was measured. `true` is 1."""
    return [_decimal(file, name, row, value) for row, value in enumerate(table.column(name).to_pylist())]


def _decimal(file: Path, name: str, row: int, value: Any) -> str:
    """Returns a number without an exponent, which readers of traces do not know."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, (bool, int, float)) or not math.isfinite(value) or value < 0:
        raise TraceError(f"{file}: column `{name}`, row {row + 1}: {str(value)[:40]!a} is no number from 0 on")
    return f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(int(value))


def _header(name: str) -> str:
    """Returns the name of a column without separators of tables."""
    return "".join("_" if letter in ',;\t "\n' else letter for letter in name)
