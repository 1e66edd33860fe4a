"""A scenario as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anabranch.html import escaped, table_of

if TYPE_CHECKING:
    from anabranch.scenario.scenario import Scenario


def as_html(scenario: Scenario) -> str:
    """How long it takes and with what, and a row for each path and flow."""
    run = scenario.resolved().run
    schemes = ", ".join(run.schemes or ())
    seeds = run.seeds if isinstance(run.seeds, int) else len(run.seeds or ())
    duration = run.duration or "until the transfer ends"
    head = (
        f"<p><b>{escaped(scenario.name)}</b>: {escaped(duration)}, schemes {escaped(schemes)}, "
        f"{seeds} seed{'s' * (seeds != 1)}, profile {escaped(run.profile)}</p>"
    )
    table = scenario.resolved().to_table()
    lists = [(name, table.get(name, [])) for name in ("link", "path", "flow")]
    return head + "".join(_rows(name, rows) for name, rows in lists if rows)


def _rows(name: str, rows: list[dict[str, Any]]) -> str:
    """Tables of a list, side by side: a column for each key that one of them has as text or number."""
    keys = list(dict.fromkeys(key for row in rows for key, value in row.items() if not isinstance(value, (dict, list))))
    keys = sorted(keys, key=lambda key: key != "name")
    more = [", ".join(key for key, value in row.items() if isinstance(value, (dict, list))) for row in rows]
    header = [name if key == "name" else key for key in keys] + (["also"] if any(more) else [])
    cells = [[*(row.get(key) for key in keys), also] for row, also in zip(rows, more, strict=True)]
    return table_of(header, [row[: len(header)] for row in cells])
