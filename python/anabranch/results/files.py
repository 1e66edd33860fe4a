"""Results as files: three Parquet tables and a manifest, which is written last."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.errors import ResultsError
from anabranch.results import FORMAT, TABLES, Results, Table
from anabranch.results.schema import DELIVERY_FIGURES, schema
from anabranch.text_file import read_text

MANIFEST = "manifest.json"
RESUME_HINT = "run the sweep again with the same --out, which takes finished runs from the cache"
_KEYS = {
    "format": str,
    "version": str,
    "commit": str,
    "fingerprint": str,
    "scenario": str,
    "scenario_name": str,
    "source": str,
    "set": list,
    "over": dict,
    "together": list,
    "schemes": list,
    "seeds": list,
    "missing": int,
    "rows": dict,
}


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Raises `ResultsError` unless results may be written here: the folder is empty, or has results."""
    try:
        present = sorted(entry.name for entry in folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise ResultsError(f"{folder}: results cannot be written here: {error.strerror}") from error
    ours = (MANIFEST, *(file_name(table) for table in TABLES))
    # A writer that was killed may leave tables without a manifest, or a temporary file.
    foreign = [name for name in present if name not in ours and not name.startswith(tuple(f".{own}." for own in ours))]
    if overwrite or not foreign or MANIFEST in present:
        return
    raise ResultsError(
        f"{folder}: has other files (`{foreign[0]}`) and no results: name another folder, "
        "or allow it with overwrite=True or --force"
    )


def check_sweep(folder: Path, manifest: dict[str, Any], *, overwrite: bool) -> None:
    """Raises `ResultsError` if the folder has results of another sweep than that of this manifest.

    A sweep with further seeds and schemes is the same sweep. Damaged or incomplete results may be replaced.
    """
    try:
        present = _read_manifest(folder)
    except ResultsError:
        return
    planned = json.loads(json.dumps(manifest))
    other = [key for key in ("scenario", "over", "together") if present.get(key) != planned[key]]
    other += [key for key in ("schemes", "seeds") if not set(present[key]) <= set(planned[key])]
    if other and not overwrite:
        raise ResultsError(
            f"{folder}: contains the results of another sweep, whose {' and '.join(other)} differ: "
            "name another folder, or replace them with --force"
        )


def make_folder(folder: Path) -> None:
    """Makes the folder, and checks that it is writable. Raises `ResultsError` before results are computed."""
    probe = folder / f".{MANIFEST}.{secrets.token_hex(4)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ResultsError(f"{folder}: results cannot be written here: {error.strerror}") from error


def file_name(table: Table) -> str:
    return f"{table}.parquet"


def write(results: Results, folder: Path, *, overwrite: bool) -> None:
    """Writes the tables, and then the manifest: see `Results.write`."""
    check_folder(folder, overwrite=overwrite)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The manifest is removed first, so that tables that are being replaced do not count as complete.
        (folder / MANIFEST).unlink(missing_ok=True)
        for table in TABLES:
            _replace(folder / file_name(table), _table_writer(results.to_arrow(table)))
        rows = {table: results.to_arrow(table).num_rows for table in TABLES}
        text = json.dumps({**results.manifest, "rows": rows}, indent=2, ensure_ascii=False) + "\n"
        _replace(folder / MANIFEST, lambda file: file.write(text.encode()))
    except OSError as error:
        place = error.filename or folder
        raise ResultsError(f"{place}: results cannot be written: {error.strerror or error}") from error


def _table_writer(table: pa.Table) -> Callable[[IO[bytes]], object]:
    # Checksums of pages detect changes on the disk. Options are explicit, since pyarrow's defaults may change.
    return lambda file: pq.write_table(
        table, file, compression="zstd", version="2.6", write_page_checksum=True, store_schema=False
    )


def _replace(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Replaces a file atomically, by way of a temporary file beside it."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def read(folder: Path) -> Results:
    """Reads and checks the manifest and the tables: see `Results.read`."""
    manifest = _read_manifest(folder)
    rows = manifest.pop("rows")
    tables = {table: _read_table(folder / file_name(table), table, manifest, rows) for table in TABLES}
    return Results(**tables, manifest=manifest)


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(read_text(path))
    except FileNotFoundError:
        there = "has no manifest.json" if folder.is_dir() else "does not exist"
        raise ResultsError(f"{folder}: {there}, so the results are incomplete: {RESUME_HINT}") from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: cannot be read: {error}: {RESUME_HINT}") from error
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise ResultsError(f"{path}: is not a manifest of results; name the folder that a sweep has written")
    if manifest["format"] != FORMAT:
        raise ResultsError(
            f"{path}: `format` is `{manifest['format']}`, this version reads `{FORMAT}`: "
            "read it with the version that wrote it, or run the sweep again"
        )
    for key, kind in _KEYS.items():
        if not isinstance(manifest.get(key), kind):
            raise ResultsError(f"{path}: `{key}` is missing or is no {kind.__name__}: {RESUME_HINT}")
    return manifest


def _read_table(path: Path, table: Table, manifest: dict[str, Any], rows: dict[str, Any]) -> pa.Table:
    try:
        with path.open("rb") as file:
            # Without threads: Arrow's threads abort a process that ends just after their start, as by an error.
            whole = pq.ParquetFile(file, page_checksum_verification=True, pre_buffer=False)
            read: pa.Table = whole.read(use_threads=False)
    except FileNotFoundError:
        raise ResultsError(f"{path}: is missing: {RESUME_HINT}") from None
    except (OSError, pa.ArrowException) as error:
        raise ResultsError(f"{path}: is damaged or no Parquet file ({error}): {RESUME_HINT}") from error
    expected = schema(table, manifest["over"])
    for field in DELIVERY_FIGURES if table == "flows" else ():
        if field.name not in read.column_names:
            read = read.append_column(field, pa.nulls(read.num_rows, field.type))
    missing = [name for name in expected.names if name not in read.column_names]
    if missing:
        raise ResultsError(f"{path}: has no column `{missing[0]}`: {RESUME_HINT}")
    try:
        read = read.select(expected.names).cast(expected)
    except (pa.ArrowException, ValueError) as error:
        raise ResultsError(f"{path}: a column has another type than it should: {error}: {RESUME_HINT}") from error
    if read.num_rows != rows.get(table):
        raise ResultsError(
            f"{path}: has {read.num_rows} rows, but manifest.json lists {rows.get(table)}: {RESUME_HINT}"
        )
    return read
