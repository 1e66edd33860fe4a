"""Rendering of a report as one HTML file."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

from markupsafe import Markup

from anabranch.html import templates
from anabranch.reporting.content import Page
from anabranch.reporting.palette import style_of
from anabranch.version import engine

# In the order of their dependencies.
SCRIPTS = (
    *("data.js", "view.js", "look.js", "panels.js", "events.js", "rows.js"),
    *("chart.js", "readout.js", "tip.js", "choice.js", "controls.js", "main.js"),
)


def render(page: Page) -> str:
    """Returns the page as HTML, which contains everything it needs.

    Its Content-Security-Policy blocks all loading, and allows only the page's own scripts by their hashes. Text from a
    scenario could not run as a script even if it were not escaped.
    """
    scripts = _scripts() if page.timeline is not None else []
    return (
        templates("anabranch.reporting", "page")
        .get_template("page.html")
        .render(
            page=page,
            policy=_policy(scripts),
            style=Markup(style_of(_series(page)) + _file("page.css")),
            scripts=[Markup(script) for script in scripts],
            version=engine().version,
        )
    )


def _series(page: Page) -> set[str]:
    """Returns the colours of all drawings of a page."""
    of_timeline = page.timeline.series if page.timeline is not None else frozenset[str]()
    return set(of_timeline).union(*(figure.series for figure in page.figures))


def _scripts() -> list[str]:
    """Returns Plotly, and the page's own script, whose files share one private scope."""
    from plotly.offline import get_plotlyjs

    own = "\n".join(_file(name) for name in SCRIPTS)
    return [get_plotlyjs(), f'(() => {{\n"use strict";\n{own}}})();\n']


def _file(name: str) -> str:
    return resources.files("anabranch.reporting").joinpath("page", name).read_text(encoding="utf-8")


def _policy(scripts: list[str]) -> str:
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    # Plotly and the figures set styles on elements. The sources data: and blob: serve to save the chart as a picture.
    return (
        f"default-src 'none'; script-src {hashes or chr(39) + 'none' + chr(39)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
