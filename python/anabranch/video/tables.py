"""Small tables in CSV or Parquet, by the ending of the file's name, as rows of text or numbers by column."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from anabranch.errors import VideoError
from anabranch.text_file import ENCODING

PARQUET = ".parquet"
CSV = ".csv"
_LONGEST_CELL_CHARACTERS = 64
_LONGEST_LINE_CHARACTERS = 4096
_BATCH_ROWS = 65_536

Row: TypeAlias = Mapping[str, object]


def check_ending(path: Path) -> str:
    """Returns `.csv` or `.parquet`. Raises `VideoError` for another ending."""
    ending = path.suffix.lower()
    if ending not in (CSV, PARQUET):
        raise VideoError(f"{path}: tables are .csv or .parquet: end the name with one of them")
    return ending


def write_table(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Writes columns of the same length. Raises `VideoError` for another ending, and `OSError`."""
    if check_ending(path) == CSV:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path, compression="zstd")


def read_rows(path: Path, needed: Sequence[str], most_rows: int, optional: Sequence[str] = ()) -> Iterator[Row]:
    """Yields the rows. Raises `VideoError` about the file if it cannot be read or has too many rows."""
    read = _csv_rows if check_ending(path) == CSV else _parquet_rows
    rows = read(path, needed, optional)
    try:
        number = 0
        for row in islice(rows, most_rows + 1):
            number += 1
            yield row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise VideoError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if number > most_rows:
        raise VideoError(f"{path}: has more than {most_rows} rows, more than a clip can have")


def _csv_rows(path: Path, needed: Sequence[str], _: Sequence[str]) -> Iterator[Row]:
    with path.open(newline="", encoding=ENCODING) as file:
        # Bounds the memory that a line takes, which may be as long as the file.
        reader = csv.DictReader(iter(lambda: file.readline(_LONGEST_LINE_CHARACTERS), ""), strict=True)
        _check_columns(path, reader.fieldnames or (), needed)
        yield from reader


def _parquet_rows(path: Path, needed: Sequence[str], optional: Sequence[str]) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as opened:
            file = pq.ParquetFile(opened, pre_buffer=False)
            # Other columns are not read, since they may have any size.
            columns = [name for name in file.schema_arrow.names if name in {*needed, *optional}]
            _check_columns(path, columns, needed)
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        raise VideoError(f"{path}: is damaged or no Parquet file: {error}") from error


def _check_columns(path: Path, there: Sequence[str], needed: Sequence[str]) -> None:
    """Raises `VideoError` for a missing column, even without rows: a table without rows means that nothing arrived."""
    for name in needed:
        if name not in there:
            raise VideoError(f"{path}: has no column `{name}`: it needs {', '.join(needed)}")


def whole(row: Row, name: str, where: str, *, most: int) -> int:
    """Returns a number from 0 to `most`. Raises `VideoError` about the place `where`."""
    number = _number(row, name, where)
    if not number.is_integer() or not 0 <= number <= most:
        raise VideoError(f"{where}: `{name}` is {_shown(row[name])}, and should be a whole number from 0 to {most}")
    return int(number)


def time_of(row: Row, name: str, where: str) -> float:
    """Returns a finite time of 0 or more. Raises `VideoError` about the place `where`."""
    number = _number(row, name, where)
    if not math.isfinite(number) or number < 0:
        raise VideoError(f"{where}: `{name}` is {_shown(row[name])}, and should be a time of 0 or more")
    return number


def _number(row: Row, name: str, where: str) -> float:
    value = row[name]
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise VideoError(f"{where}: `{name}` is {_shown(value)}, which is not a number") from None


def _shown(value: object) -> str:
    """Returns a value of a file for a message: short, and with control characters escaped."""
    return ascii(value if isinstance(value, (int, float, type(None))) else str(value)[:_LONGEST_CELL_CHARACTERS])
