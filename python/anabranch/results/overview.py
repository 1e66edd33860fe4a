"""Overview of results: a table of means with intervals, as text, in a notebook, and as a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anabranch import public
from anabranch.html import escaped, table_of
from anabranch.quantity import numbers_of

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from anabranch.results import Results

# Maximum number of rows in a notebook, as in pandas.
_MAX_ROWS = 60


def means(results: Results, metric: str) -> pandas.DataFrame:
    """Returns means with intervals as text: a row for each point, by the varying keys, a column for each scheme."""
    statistics = public("statistics")
    table = statistics.summary(results, metric)
    keys = [key for key in results.over if len(results.manifest["over"][key]) > 1]
    table = table.assign(text=statistics.as_text(table))
    parts = [part for part in ("flow", "path") if part in table.columns]
    rows = [*keys, *parts]
    if not rows:
        return table.set_index("scheme")[["text"]].rename(columns={"text": metric}).rename_axis(None)
    wide = table.pivot(index=rows, columns="scheme", values="text")
    order = list(dict.fromkeys(zip(*(table[key] for key in rows), strict=True)))
    wide = wide.reindex(order if len(rows) > 1 else [key[0] for key in order])
    return wide[list(dict.fromkeys(table["scheme"]))].rename_axis(columns=metric)


def varying_first(frame: pandas.DataFrame, identity: list[str]) -> pandas.DataFrame:
    """Returns the frame with the columns first that differ between rows, and those with a single value last."""
    varied = [name for name in identity if frame[name].nunique(dropna=False) > 1]
    rest = [name for name in identity if name not in varied]
    constant = [name for name in ("profile",) if name in frame.columns and frame[name].nunique(dropna=False) < 2]
    last = [*rest, *constant, "run"]
    figures = [name for name in frame.columns if name not in (*identity, *last)]
    return frame[[*varied, *figures, *last]]


def as_html(results: Results, metric: str) -> str:
    """Returns the view in a notebook."""
    count = results.runs.num_rows
    seeds = len(results.manifest["seeds"])
    runs = f"{count} run{'s' * (count != 1)}, {seeds} seed{'s' * (seeds != 1)}"
    name = escaped(results.manifest["scenario_name"])
    if not count:
        return f"<p><b>{name}</b>: no runs</p>"
    head = f"<p><b>{name}</b>: {escaped(metric)}, {runs}; means with 95 % intervals</p>"
    table = means(results, metric)
    cut = len(table) - _MAX_ROWS
    more = f"<p>… and {cut} more rows: see <code>summary()</code></p>" if cut > 0 else ""
    return head + _wide(table.head(_MAX_ROWS)) + more


def _wide(table: pandas.DataFrame) -> str:
    # A table without points has a row for each scheme.
    named = table if table.index.name or table.index.nlevels > 1 else table.rename_axis("scheme")
    frame = named.reset_index()
    return table_of([str(name) for name in frame.columns], frame.to_numpy().tolist())


def plot(results: Results, metric: str, **options: Any) -> Axes:
    """Draws lines over the swept key, or bars if nothing numeric was swept."""
    given = options.get("x")
    at = options.get("at") or {}
    over = results.manifest["over"]
    swept = [given] if given else [key for key, values in over.items() if len(values) > 1 and key not in at]
    has_axis = bool(swept) and all(numbers_of(key, over.get(key, [])) is not None for key in swept)
    axes: Axes = public("plot_metric" if has_axis else "plot_bars")(results, metric, **options)
    return axes
