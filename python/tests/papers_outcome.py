"""Planted outcome with a claim of every verdict and rank, in two papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anabranch.experiments import outcome as out
from anabranch.experiments.pages.index import index_page
from anabranch.experiments.verdicts.grades import Verdict

CAUSE = "Windows are `larger` here."
_RANKS = {
    Verdict.REPRODUCED: "H",
    Verdict.ABOUT: "H",
    Verdict.DIRECTION_ONLY: "S",
    Verdict.DIFFERS: "W",
    Verdict.CONTRADICTORY: "X",
    Verdict.CANNOT_TELL: "H",
    Verdict.OPEN: "S",
}
PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="687" height="300" viewBox="0 0 687 300">'
    '<rect width="687" height="300" fill="white"/></svg>'
)


def claim(identity: str, verdict: Verdict, rank: str = "H", **more: Any) -> out.ClaimOutcome:
    """Returns a claim with one figure."""
    part: out.PartOutcome = {
        "label": "",
        "verdict": verdict.value,
        "ours": {"mean": 12.0, "half_width": 1.0, "n": 20, "kind": "interval"},
        "unit": "%",
        "detail": "",
        "detectable": None,
    }
    found: Any = {
        "id": identity,
        "rank": rank,
        "status": "ok",
        "contradiction": "",
        "note": "",
        "says": f"says {identity}",
        "checked": "",
        "claimed": "+16 %",
        "verdict": verdict.value,
        "default": verdict.value,
        "depends_on": [],
        "parts": [part],
        "detail": "",
        "sensitivity": [],
        "causes": [],
    }
    return {**found, **more}


def experiment(identity: str, claims: Sequence[out.ClaimOutcome], figures: int = 1, **more: Any) -> Any:
    """Returns an experiment with this number of figures."""
    names = ["figure", *[f"figure-{number}" for number in range(2, figures + 1)]][:figures]
    drawn = [
        {"name": name, "kind": "lines", "title": "", "files": [f"{name}.svg", f"{name}.csv"], "table": []}
        for name in names
    ]
    return {
        "id": identity,
        "title": f"Title of {identity}",
        "source": "Fig. 1",
        "note": "",
        "deferred": "",
        "unknowns": [],
        "measure": "goodput_kbps",
        "seeds": 20,
        "runs": 60,
        "failed": 0,
        "figures": drawn,
        "claims": list(claims),
        "changes": [],
        **more,
    }


def outcome(first: Sequence[Any], second: Sequence[Any] = ()) -> out.Outcome:
    """Returns an outcome of two papers with these experiments, or of one."""
    papers: list[Any] = [
        {
            "key": key,
            "title": f"Title of {key}",
            "authors": ["A. Author"],
            "venue": "Venue",
            "year": 2020,
            "doi": "",
            "decided": {},
            "experiments": list(experiments),
            "causes": [{"claims": ["with-cause", "another"], "text": CAUSE, "evidence": ["fig1:change"]}],
        }
        for key, experiments in (("one", first), ("two", second))
        if experiments
    ]
    scope = {"quick": False, "seeds": None, "variants": True, "ablations": True}
    return {"format": out.FORMAT, "scope": scope, "studies": papers}


def every_verdict() -> out.Outcome:
    """Returns an outcome with a claim of each verdict in the first paper, and a reproduced claim in the second."""
    claims = [claim(verdict.key, verdict, rank) for verdict, rank in _RANKS.items()]
    causes = claim("with-cause", Verdict.DIFFERS, "S", causes=[0])
    return outcome(
        [experiment("fig1", claims), experiment("fig2", [causes], figures=2)],
        [experiment("fig3", [claim("last", Verdict.REPRODUCED)]), experiment("fig4", [], figures=0)],
    )


def write_page(made: out.Outcome, folder: Path) -> Path:
    """Writes the page with its pictures."""
    for paper in made["studies"]:
        for each in paper["experiments"]:
            for figure in each["figures"]:
                place = folder / paper["key"] / each["id"] / f"{figure['name']}.svg"
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(PICTURE)
    page = folder / "index.html"
    page.write_text(index_page(made), encoding="utf-8")
    return page
