"""Tables for a terminal."""

from __future__ import annotations

from anabranch.experiments.pages.document import Table


def text_table(table: Table) -> str:
    """The table with aligned columns, without Markdown's marks."""
    rows = [[str(cell).replace("`", "") for cell in row] for row in (table.header, *table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.header))]

    def line(row: list[str]) -> str:
        cells = (
            cell.rjust(width) if column in table.right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return "\n".join(map(line, rows))
