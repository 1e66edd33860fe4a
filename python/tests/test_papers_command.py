"""`anabranch papers` on the command line, and how pages are written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from papers_planted import PLANTED

from anabranch.command.papers import main
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.pages.document import (
    Heading,
    Image,
    Items,
    Link,
    Paragraph,
    Table,
    inline_html,
    markdown,
)
from anabranch.experiments.pages.experiment import value
from anabranch.experiments.progress import Lines, progress_of
from anabranch.experiments.study import read_study

DATA = str(PLANTED.parent)


def papers(*arguments: str) -> int:
    return main(["--data", DATA, *arguments])


def test_without_a_terminal_lines_say_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(40, "experiments")
    lines.at("planted-paper/fig1")
    assert lines.text(12.4) == "experiments: 0 of 40 runs in 12 s, now planted-paper/fig1"
    lines.update(40)
    assert lines.text(30) == "experiments: 40 of 40 runs in 30 s; drawing figures and writing pages"
    lines = Lines(40, "experiments")
    with lines.printed(every_s=0.01):
        lines.at("planted-paper/fig1")
        lines.update(3)
        printed, until = "", time.monotonic() + 60
        while "3 of 40 runs" not in printed and time.monotonic() < until:
            time.sleep(0.01)
            printed += capsys.readouterr().err
    assert re.search(r"experiments: 3 of 40 runs in \d+ s, now planted-paper/fig1\n", printed)
    with progress_of(40, None, "experiments") as progress:
        assert isinstance(progress, Lines), "standard error is no terminal here"


def test_bar_is_shown_on_request_only(capsys: pytest.CaptureFixture[str]) -> None:
    for shown in (True, False):
        with progress_of(40, shown, "experiments") as progress:
            progress.at("planted-paper/fig1")
            progress.update(40)
        assert ("40/40" in capsys.readouterr().err) is shown


def test_papers_are_listed_with_claims_and_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "planted-paper  Claims that are known to hold, and others that are known not to"
    assert "A. Nobody and B. Nobody, Tests, 2026; 13 claims: 8 headline" in lines[1]
    assert any(
        line.split(":")[1].strip() == "8 claims, 36 runs, 2 variants, 1 reading, 1 ablation"
        for line in lines
        if line.startswith("  loss ")
    )


def test_an_experiment_is_shown_with_setting_unknowns_changes_and_claims(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers("show", "planted-paper/loss") == 0
    text = capsys.readouterr().out
    for said in (
        "varied    PLR of the second path (%): 0, 5, 20 (plr2: path.path-2.loss)",
        "schemes   CMT = cmt, CMT-PF = cmt-pf, SCTP = sctp",
        "  - one-way delay",
        "one-way delay: path.*.delay = 100 ms",
        "second-link: path.path-2.rate = 20 kbit/s, path.path-2.delay = 300 ms",
        "loss-higher (H)",
        "= CMT above SCTP, +60 %",
        "loss-slope (X, inconsistent I1)",
        "= CMT-PF > SCTP, at each plr2",
    ):
        assert said in text


def test_values_drawn_per_seed_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers("show", "planted-paper/drawn") == 0
    assert "drawn     path.path-1.loss from 0 to 0.02, evenly, again for each seed" in capsys.readouterr().out


def test_a_paper_is_shown_with_its_schemes_and_conventions(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers("show", "planted-paper") == 0
    text = capsys.readouterr().out
    assert "CMT-PF  cmt-pf" in text
    assert "percentages  of the scheme that comes second" in text
    assert "second-link  Both links have the same rate" in text
    assert papers("show", "planted-paper/video") == 0
    assert "Not run: needs a video codec" in capsys.readouterr().out


def test_unknown_names_are_invalid_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers("show", "planted-paper/los") == 2
    assert "has no experiment `los`; did you mean `loss`?" in capsys.readouterr().err
    assert papers("reproduce", "nothing", "--out", "unused") == 2
    assert "unknown study `nothing`" in capsys.readouterr().err


def test_options_that_contradict_each_other_are_wrong_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers("reproduce", "all", "--out", "unused", "--cache", "x", "--no-cache") == 2
    assert "--cache and --no-cache" in capsys.readouterr().err
    with pytest.raises(SystemExit) as error:
        papers("reproduce", "all", "--out", "unused", "--seeds", "0")
    assert error.value.code == 2


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main(["reproduce", "--help"])
    assert error.value.code == 0
    assert "anabranch papers reproduce all --quick --out" in capsys.readouterr().out


def test_listing_does_not_wait_for_the_libraries_of_a_reproduction() -> None:
    heavy = ["pandas", "scipy", "matplotlib", "statsmodels", "pyarrow"]
    code = (
        "import sys; from anabranch.command.papers import main; "
        f"main(['--data', {DATA!r}, 'list']); "
        f"sys.exit(', '.join(name for name in {heavy!r} if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reproduction_prints_counts_places_and_rates(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["reproduce", "planted-paper/file", "--quick", "--out", str(tmp_path), "--no-cache"]
    assert papers(*arguments) == 0
    shown = capsys.readouterr()
    assert "H (headline)" in shown.out
    assert str(tmp_path / "summary.md") in shown.out
    assert "runs and" in shown.out
    assert "simulated packets with DATA per second" in shown.out
    # A slow machine shows how far it is; nothing else is said.
    assert all(line.startswith("experiments: ") for line in shown.err.splitlines()), shown.err
    assert json.loads((tmp_path / "verdicts.json").read_text())["scope"]["quick"] is True


def test_each_kind_of_claim_describes_the_value_of_the_paper() -> None:
    paper = read_study(PLANTED)
    said = {claim.id: claim.statement.claimed() for claim in paper.claims}
    assert said == {
        "loss-higher": "+60 %",
        "loss-lower": "below",
        "loss-value": "1000 kbit/s",
        "loss-decisive": "above",
        "loss-falls": "falling",
        "loss-order": "CMT-PF > SCTP",
        "loss-gain": "gain falling",
        "loss-slope": "slope 1 kbit/s per %",
        "windows-first": "4380 B",
        "windows-paths": "above",
        "file-grows": "rising",
        "drawn-rises": "not below",
        "video-psnr": "open",
    }


@pytest.mark.parametrize(
    ("mean", "half_width", "unit", "said"),
    [
        (16.234, 2.06, "%", "+16.2 ± 2.1 %"),
        (-3.0, None, "%", "-3.0 %"),
        (4.26, 1.0, "points", "+4.3 ± 1.0 points"),
        (1786.71, 38.1, "kbit/s", "1787 ± 38 kbit/s"),
        (0.85, None, "", "0.85"),
        (134.25, 9.0, "from 0 on", "+134.2 ± 9.0 from 0 on"),
        (None, None, "s", "no value"),
    ],
)
def test_figures_have_the_digits_that_a_reader_needs(
    mean: float | None, half_width: float | None, unit: str, said: str
) -> None:
    assert value({"mean": mean, "half_width": half_width, "n": 20, "kind": "interval"}, unit) == said


def test_a_document_says_the_same_as_markdown_and_as_html() -> None:
    blocks = [
        Heading(1, "Title & more"),
        Paragraph("`code` and **strong** <b>"),
        Paragraph(Link("there", "a/b.md")),
        Items(["one", "two"]),
        Table(["name", "value"], [["a|b", "1"]], frozenset({1})),
        Image("figure.svg", "a figure"),
    ]
    assert markdown(blocks) == (
        "# Title & more\n\n`code` and **strong** <b>\n\n[there](a/b.md)\n\n* one\n* two\n\n"
        "| name | value |\n| --- | ---: |\n| a\\|b | 1 |\n\n![a figure](figure.svg)\n"
    )
    html = "".join(block.html() for block in blocks if not isinstance(block, (Heading, Image)))
    assert "<p><code>code</code> and <strong>strong</strong> &lt;b&gt;</p>" in html
    assert '<a href="a/b.md">there</a>' in html
    assert '<td class="n">1</td>' in html


def test_links_in_a_text_lead_to_pages_and_not_to_scripts() -> None:
    for target in ("https://example.org/a?b=c", "#place", "notes.md", "../papers.md#measures"):
        assert inline_html(f"[x]({target})") == f'<a href="{target}">x</a>'
    for target in ("javascript:alert(1)", "data:text/html,x", 'a.md"onclick="alert(1)'):
        assert f'href="{target}' not in inline_html(f"[x]({target})")


def test_every_measure_that_the_papers_need_exists() -> None:
    needed = {
        "goodput_kbps",
        "throughput_kbps",
        "transfer_s",
        "cwnd_mean_bytes",
        "cwnd_initial_bytes",
        "timeouts",
        "timeouts_per_mb",
        "retransmissions",
        "retransmissions_mean_per_path",
        "retransmissions_per_delivered_chunk",
        "ooo_peak",
        "ooo_mean_absolute",
        "highest_tsn_received",
        "path_tsn_slope",
        "utilisation_percent",
    }
    assert needed <= set(MEASURES)


def test_the_book_lists_every_measure_with_its_definition() -> None:
    chapter = (PLANTED.parents[3] / "docs" / "src" / "papers.md").read_text(encoding="utf-8")
    for measure in MEASURES.values():
        assert f"| `{measure.name}`" in chapter
        assert f"| {measure.unit} | {measure.about} | {measure.source} |" in chapter
