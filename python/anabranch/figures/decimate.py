"""Decimation: reduction of points that does not change the picture."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def decimate_line(values: np.ndarray, limit: int = 2000) -> np.ndarray:
    """Returns positions in a line of `values` that suffice to draw it, in order: at most `limit`, at least four.

    The line is divided into `limit` / 4 stretches. The first, least, greatest and last value of each stretch remain, so
    that ends and peaks of any width are kept. NaN is neither least nor greatest.
    """
    n = len(values)
    if n <= max(limit, 4):
        return np.arange(n)
    values = np.asarray(values, dtype=float)
    edges = np.linspace(0, n, max(limit // 4, 1) + 1).astype(int)
    least, greatest = np.where(np.isnan(values), np.inf, values), np.where(np.isnan(values), -np.inf, values)
    found = [
        (start, start + least[start:end].argmin(), start + greatest[start:end].argmax(), end - 1)
        for start, end in pairwise(edges)
    ]
    return np.unique(np.array(found))


def decimate_points(x: np.ndarray, y: np.ndarray, columns: int = 450, rows: int = 180) -> np.ndarray:
    """Returns positions of points that do not cover each other, in order: one for each cell of a grid that has any.

    The least and the greatest y are among them.
    """
    if len(x) <= 2:
        return np.arange(len(x))
    cells = _cell(x, columns) * rows + _cell(y, rows)
    _, first = np.unique(cells, return_index=True)
    return np.unique(np.concatenate([first, [np.argmin(y), np.argmax(y)]]))


def _cell(values: np.ndarray, count: int) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    low, high = values.min(), values.max()
    if low == high:
        return np.zeros(len(values), dtype=int)
    scaled = (values - low) / (high - low) * count
    return np.asarray(np.minimum(scaled, count - 1), dtype=int)
