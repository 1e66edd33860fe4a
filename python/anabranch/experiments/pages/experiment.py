"""Page of an experiment: its figures, and the verdict on each claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from anabranch.estimate import decimals, rounded
from anabranch.experiments import outcome as out
from anabranch.experiments.model import RADIO, STANDARD
from anabranch.experiments.pages.document import Block, Heading, HtmlBlock, Image, Items, Paragraph, Table

COLUMNS = {STANDARD: "under RFC 9260", RADIO: "on radio links"}
"""Titles of the columns with verdicts under a change, by its id."""

NOT_RUN = "not run"


def experiment_blocks(
    study: out.StudyOutcome, experiment: out.ExperimentOutcome, level: int, pictures: Mapping[str, str]
) -> Iterator[Block]:
    """Yields the page of an experiment with a heading of this level. `pictures` are files by the names of figures."""
    yield Heading(level, f"{study['key']}/{experiment['id']}: {experiment['title']}")
    yield Paragraph(about(experiment))
    if experiment["note"]:
        yield Paragraph(experiment["note"])
    for figure in experiment["figures"]:
        if figure["name"] in pictures:
            yield Image(pictures[figure["name"]], figure["title"] or f"{experiment['id']}, {figure['name']}")
        if figure["table"]:
            if figure["title"]:
                yield Paragraph(f"{figure['title']}:")
            yield table_of(figure["table"])
    if experiment["claims"]:
        yield claims_table(experiment["claims"])
        if notes := [f"`{claim['id']}`: {claim['note']}" for claim in experiment["claims"] if claim["note"]]:
            yield Items(notes)
    yield from sensitivity_blocks(experiment)
    yield from change_blocks(experiment)
    yield from _causes(study, experiment)


def about(experiment: out.ExperimentOutcome) -> str:
    """Returns a text with source, numbers of runs and seeds, and unknown values of an experiment."""
    if experiment["deferred"]:
        return f"{experiment['source']}. Open: {experiment['deferred']}."
    seeds = "seed" if experiment["seeds"] == 1 else "seeds"
    text = f"{experiment['source']}. {experiment['runs']} runs, {experiment['seeds']} {seeds} for each cell."
    if experiment["failed"]:
        text += f" {experiment['failed']} of the runs failed; their figures up to the failure count."
    if experiment["unknowns"]:
        text += f" Not known: {'; '.join(experiment['unknowns'])}."
    return text


def pictures_of(experiment: out.ExperimentOutcome, folder: str = "") -> dict[str, str]:
    """Returns the SVG file of each figure of an experiment, by the figure's name."""
    return {
        figure["name"]: f"{folder}{file}"
        for figure in experiment["figures"]
        for file in figure["files"]
        if file.endswith(".svg")
    }


def table_of(table: list[list[str]]) -> Table:
    """Returns the table of a figure, without an empty first column."""
    header, *rows = table
    if not any(row[0] for row in rows):
        header, rows = header[1:], [row[1:] for row in rows]
    return Table(header, rows, frozenset(range(header.index("scheme") + 1, len(header))))


def claims_table(claims: Sequence[out.ClaimOutcome]) -> Table:
    """Returns claimed figures beside measured ones, and the verdicts under the changes of `COLUMNS`."""
    header = ["claim", "rank", "statement", "claimed", "ours", "n", "verdict"]
    rows = [
        [
            f"`{claim['id']}`",
            claim["rank"],
            claim["says"],
            claim["claimed"],
            ours(claim["parts"], claim["detail"]),
            samples(claim["parts"]),
            verdict(claim),
        ]
        for claim in claims
    ]
    for title, cells in further_columns(claims):
        header.append(title)
        for row, cell in zip(rows, cells, strict=True):
            row.append(cell)
    return Table(header, rows, frozenset({5}))


def further_columns(claims: Sequence[out.ClaimOutcome]) -> list[tuple[str, list[str]]]:
    """Returns the columns of `COLUMNS` that have a verdict on one of the claims, each with its title and cells."""
    columns = [(title, [under(claim, change) for claim in claims]) for change, title in COLUMNS.items()]
    return [(title, cells) for title, cells in columns if any(cells)]


def is_headline(claim: out.ClaimOutcome) -> bool:
    """Returns `True` for a headline claim."""
    return claim["rank"] == "H"


def under(claim: out.ClaimOutcome, change: str) -> str:
    """Returns the verdict under a change of `COLUMNS`, empty if there is none.

    Only headline claims have one under the current standard.
    """
    is_standard = change == STANDARD
    if is_standard and not is_headline(claim):
        return ""
    found = [each["verdict"] for each in claim["sensitivity"] if each["change"] == change]
    return found[0] if found else NOT_RUN if is_standard else ""


def ours(parts: Sequence[out.PartOutcome], detail: str = "") -> str:
    """Returns the measured figures, one for each part."""
    return "; ".join(_part(part) for part in parts) or detail or "-"


def ours_in_brief(parts: Sequence[out.PartOutcome]) -> str:
    """Returns the measured figures without their details."""
    return "; ".join(_labelled(part) for part in parts) or "-"


def _labelled(part: out.PartOutcome) -> str:
    label = f"{part['label']}: " if part["label"] else ""
    return f"{label}{value(part['ours'], part['unit'])}"


def _part(part: out.PartOutcome) -> str:
    said = [part["detail"], detectable(part)]
    detail = f" ({'; '.join(text for text in said if text)})" if any(said) else ""
    return f"{_labelled(part)}{detail}"


def detectable(part: out.PartOutcome) -> str:
    """Returns the detectable difference of a part whose interval is too wide."""
    if part["detectable"] is None:
        return ""
    least = value({**part["ours"], "mean": part["detectable"], "half_width": None}, part["unit"]).lstrip("+")
    return f"detects {least} or more"


def value(number: out.EstimateOutcome, unit: str) -> str:
    """Returns a mean with its interval and unit. Percentages and points have a sign."""
    mean, half_width = number["mean"], number["half_width"]
    if mean is None:
        return "no value"
    signed = unit in ("%", "points", "from 0 on")
    places = 1 if signed else decimals(mean)
    shown = rounded(mean, places, "+" if signed else "-")
    if half_width is not None:
        shown += f" ± {rounded(half_width, places)}"
    return f"{shown} {unit}".rstrip()


def samples(parts: Sequence[out.PartOutcome]) -> str:
    """Returns the number of seeds of the figures."""
    counts = sorted({part["ours"]["n"] for part in parts})
    if not counts:
        return ""
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def verdict(claim: out.ClaimOutcome) -> str:
    """Returns the verdict with its marks."""
    found = marks(claim)
    return f"**{claim['verdict']}**" + (f" ({'; '.join(found)})" if found else "")


def marks(claim: out.ClaimOutcome) -> list[str]:
    """Returns the marks of a verdict: the status of the claim, and the variants that change the verdict."""
    found = []
    if claim["status"] != "ok":
        found.append(f"{claim['status']} {claim['contradiction']}".rstrip())
    if claim["depends_on"]:
        found.append(f"depends on {', '.join(claim['depends_on'])}")
    return found


def causes_of(study: out.StudyOutcome, claim: out.ClaimOutcome) -> list[out.CauseOutcome]:
    """Returns the known causes of a claim that is not reproduced."""
    return [study["causes"][number] for number in claim["causes"]]


_CLAIMS_UNDER = {
    "variant": "Claims under other values",
    "reading": "Claims under readings that were decided against",
    "ablation": "Claims under ablations",
}


def sensitivity_blocks(experiment: out.ExperimentOutcome) -> Iterator[HtmlBlock]:
    """Yields the verdicts under each change: in full for claims that depend on one, and in short for all."""
    decisive = [claim for claim in experiment["claims"] if claim["depends_on"]]
    if decisive:
        yield Paragraph("**Undecided claims.** These claims are true with one plausible value and false with another.")
        rows = [row for each in decisive for row in _decided(each)]
        yield Table(["claim", "claimed", "with", "ours", "verdict"], rows)
    for kind, title in _CLAIMS_UNDER.items():
        table = _under(experiment, kind)
        if table is not None:
            yield Paragraph(f"**{title}.** A cell without a verdict has the verdict of the run without the change.")
            yield table


def _decided(claim: out.ClaimOutcome) -> Iterator[list[str]]:
    name = f"`{claim['id']}`"
    yield [name, claim["claimed"], "as reproduced", ours(claim["parts"]), claim["default"]]
    for each in claim["sensitivity"]:
        if each["decides"]:
            yield [name, claim["claimed"], f"`{each['change']}`", ours(each["parts"]), each["verdict"]]


def _under(experiment: out.ExperimentOutcome, kind: str) -> Table | None:
    """Returns a table with a row for each claim and a column for each change of a kind, or `None` without changes."""
    changes = [change["id"] for change in experiment["changes"] if change["kind"] == kind]
    rows = []
    for claim in experiment["claims"]:
        found = {each["change"]: each for each in claim["sensitivity"] if each["kind"] == kind}
        if found:
            cells = [_short(found[change], claim["default"]) if change in found else "" for change in changes]
            rows.append([f"`{claim['id']}`", claim["claimed"], _figures(claim["parts"]), *cells])
    if not changes or not rows:
        return None
    return Table(["claim", "claimed", "as reproduced", *changes], rows)


def _short(sensitivity: out.Sensitivity, default: str) -> str:
    figures = _figures(sensitivity["parts"])
    if sensitivity["verdict"] == default:
        return figures
    return f"{figures}: **{sensitivity['verdict']}**" if figures else f"**{sensitivity['verdict']}**"


def _figures(parts: Sequence[out.PartOutcome]) -> str:
    return ", ".join(value({**part["ours"], "half_width": None}, part["unit"]) for part in parts)


def change_blocks(experiment: out.ExperimentOutcome) -> Iterator[HtmlBlock]:
    """Yields the effects of ablations, readings and variants on each scheme."""
    yield from _changes(experiment, "ablation", "Effects of parts")
    yield from _changes(experiment, "reading", "Effects of other readings")
    yield from _changes(experiment, "variant", "Effects of other values")


def _changes(experiment: out.ExperimentOutcome, kind: str, title: str) -> Iterator[HtmlBlock]:
    """Yields the effect of each change on each scheme."""
    changes = [change for change in experiment["changes"] if change["kind"] == kind]
    if not changes:
        return
    yield Paragraph(f"**{title}.** Means of `{experiment['measure']}`, differences paired by seed, where there is one.")
    yield Items([_what(change) for change in changes])
    rows = [
        [
            f"`{change['id']}`",
            scheme["scheme"],
            value(scheme["default"], ""),
            value(scheme["changed"], ""),
            value(scheme["difference"], "%"),
        ]
        for change in changes
        for scheme in change["schemes"]
        if scheme["difference"]["mean"] != 0
    ]
    if rows:
        yield Table(["change", "scheme", "as reproduced", "changed", "difference"], rows, frozenset({2, 3, 4}))


def _what(change: out.ChangeOutcome) -> str:
    question = f" ({change['unknown'] or change['decided']})" if change["unknown"] or change["decided"] else ""
    return f"`{change['id']}`{question}: {change['about']} `{change['what']}`"


def _causes(study: out.StudyOutcome, experiment: out.ExperimentOutcome) -> Iterator[Block]:
    numbers = sorted({number for claim in experiment["claims"] for number in claim["causes"]})
    if not numbers:
        return
    yield Paragraph("**Causes.**")
    for number in numbers:
        cause = study["causes"][number]
        claims = ", ".join(f"`{claim}`" for claim in cause["claims"])
        for text in f"{claims}: {cause['text']}".split("\n\n"):
            yield Paragraph(" ".join(text.split()))
        if cause["evidence"]:
            yield Paragraph(f"Evidence: {', '.join(f'`{each}`' for each in cause['evidence'])}.")
