"""Comparisons of schemes: typed paths, figures of runs, stored files, and the page."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from anabranch import video
from anabranch.errors import ScenarioError, VideoError
from anabranch.video import CodedClip, RunArrivals
from anabranch.video.fates import Fate
from anabranch.video.format import FrameFormat
from anabranch.video.metrics import METRICS
from anabranch.video_comparison import page as page_module
from anabranch.video_comparison.comparison import FIGURES, Comparison, compare
from anabranch.video_comparison.outcome import as_text, summary, warnings_of, write_comparison
from anabranch.video_comparison.page import PAGE, Clip, Settings, _data, answer, write_page
from anabranch.video_comparison.panels import fate_strip, path_panel, quality_panel, scale_of, ticks
from anabranch.video_comparison.runs import SimulatedRun
from anabranch.video_comparison.setting import paths_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DEADLINE_MS = 150.0
HOSTILE = '</script><img src=x onerror="alert(1)">'


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(VideoError) as refused:
        make()
    assert str(refused.value).isprintable()
    return str(refused.value)


def test_paths_are_links_of_the_relay_alike_in_both_directions() -> None:
    text = "rate=10Mbit,delay=45ms,loss=gilbert-elliott(p=0.01,r=25%,where=after-queue),queue=20p,name=lte"
    loss = {"model": "gilbert-elliott", "p": 0.01, "r": 0.25, "loss_good": 0.0, "loss_bad": 1.0, "where": "after-queue"}
    way = {"rate": "10 Mbit/s", "delay": "45 ms", "queue": "20 packets", "loss": [loss]}
    assert paths_of([text]) == [{"name": "lte", **way, "reverse": way, "background": [], "event": []}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '--paths:1:1: "" is not KEY=VALUE'),
        ("rate=1Mbit", "missing key `delay`"),
        ("rate=1Mbit,delay=1ms,speed=2", "unknown key `speed`"),
        ("rate=1Mbit,delay=1ms,loss=lots", "expected a number from 0 to 1, or percent"),
        ("rate=1Mbit,delay=\x1b[0m,loss", "found"),
    ],
)
def test_invalid_path_is_refused_at_its_place(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        paths_of([text])
    assert message in str(refused.value)
    assert str(refused.value).replace("\n", "").isprintable()


def test_paths_are_one_to_eight() -> None:
    assert [path["name"] for path in paths_of(["rate=1Mbit,delay=1ms"] * 3)] == ["path-1", "path-2", "path-3"]
    assert "0 paths" in refusal(lambda: paths_of([]))
    assert "9 paths" in refusal(lambda: paths_of(["rate=1Mbit,delay=1ms"] * 9))


def made_run(clip: CodedClip, folder: Path, scheme: str, seed: int, loss: float) -> SimulatedRun:
    """Returns a run with random losses, in the form of a simulated run."""
    chance = random.Random(f"{scheme} {seed}")
    arrivals = {
        packet.number: clip.frames[packet.frame].time_ms + 20
        for packet in clip.packets
        if chance.random() >= loss
    }  # fmt: skip
    file = folder / f"{scheme}-{seed}.csv"
    video.write_arrivals(file, arrivals)
    paths = {name: {"kbps": [100.0, 200.0, 0.0], "dropped": [0, 3, 0]} for name in ("path-1", HOSTILE)}
    flow = {"name": "video", "failure": None, "abandoned": {"messages": len(clip.packets) - len(arrivals)}}
    return SimulatedRun(scheme, seed, file, {"flows": [flow]}, {"width_s": 1.0, "begins_s": 0.1, "paths": paths})


@pytest.fixture(scope="module")
def runs(coded_clip: CodedClip, tmp_path_factory: pytest.TempPathFactory) -> list[SimulatedRun]:
    folder = tmp_path_factory.mktemp("arrivals")
    losses = (("cmt", 0.1), ("cmt-pf", 0.03), ("none", 0.0), ("all", 1.0))
    return [made_run(coded_clip, folder, scheme, seed, loss) for scheme, loss in losses for seed in range(1, 6)]


@pytest.fixture(scope="module")
def comparison(coded_clip: CodedClip, runs: list[SimulatedRun], tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    found = compare(coded_clip, runs, DEADLINE_MS, tmp_path_factory.mktemp("work"), shown_seed=2)
    found.warnings.extend(warnings_of(found))
    return found


def test_figures_are_those_of_an_evaluation(coded_clip: CodedClip, comparison: Comparison) -> None:
    for compared in (comparison.runs[0], comparison.runs[4]):
        found = video.evaluate(coded_clip, [RunArrivals("run", compared.run.arrivals)], DEADLINE_MS).runs[0]
        assert found.quality is not None
        for metric in METRICS:
            assert compared.figures[metric] == found.quality.mean(metric)
        assert compared.figures["decodable_percent"] == found.measures.decodable_ratio * 100
        assert compared.figures["lost"] == found.measures.count(Fate.LOST)
        assert compared.figures["stall_s"] == found.measures.stall_s


def test_without_loss_every_scheme_has_exactly_the_quality_of_coding(comparison: Comparison) -> None:
    estimates = comparison.estimates("none")
    for metric in METRICS:
        assert estimates[metric].mean == comparison.coding.mean(metric)
        assert estimates[metric].kind == "deterministic"
    assert estimates["decodable_percent"].mean == 100


def test_total_loss_is_reported_without_quality(comparison: Comparison) -> None:
    assert comparison.estimates("all")["psnr_db"].n == 0
    assert comparison.estimates("all")["decodable_percent"].mean == 0
    assert comparison.warnings == [
        f"all-seed{seed}: no frame was decodable, so no quality can be computed" for seed in range(1, 6)
    ]


def test_single_frames_are_kept_of_the_seed_that_is_shown(comparison: Comparison) -> None:
    assert [each.run.seed for each in comparison.runs if each.detail is not None] == [2] * 4


def test_intervals_are_over_seeds(comparison: Comparison) -> None:
    values = [each.figures["psnr_db"] for each in comparison.of("cmt")]
    estimate = comparison.estimates("cmt")["psnr_db"]
    assert estimate.n == 5
    assert estimate.mean == pytest.approx(np.mean(values))
    # Student's t with four degrees of freedom.
    assert estimate.half_width == pytest.approx(2.776445 * np.std(values, ddof=1) / math.sqrt(5))


def test_pairs_of_frames_are_cached(coded_clip: CodedClip, runs: list[SimulatedRun], tmp_path: Path) -> None:
    told: list[int] = []

    def again() -> Comparison:
        told.clear()
        return compare(
            coded_clip,
            runs[:3],
            DEADLINE_MS,
            tmp_path,
            shown_seed=1,
            cache=tmp_path / "pairs.npz",
            step=lambda done, _: told.append(done),
        )

    first = again()
    assert told
    second = again()
    assert not told
    assert [each.figures for each in first.runs] == [each.figures for each in second.runs]


def test_tables_have_a_row_for_each_run_and_means_for_each_scheme(comparison: Comparison, tmp_path: Path) -> None:
    write_comparison(comparison, tmp_path, {"command": "anabranch video compare"})
    lines = (tmp_path / "runs.csv").read_text().splitlines()
    assert lines[0].split(",") == ["scheme", "seed", *(figure.name for figure in FIGURES)]
    assert len(lines) == 1 + 20
    read = json.loads((tmp_path / "comparison.json").read_text())
    assert read == json.loads(json.dumps(summary(comparison, {"command": "anabranch video compare"})))
    assert read["schemes"]["cmt"]["psnr_db"]["n"] == 5
    assert read["schemes"]["all"]["psnr_db"]["mean"] is None
    text = as_text(comparison).splitlines()
    assert [line.split()[0] for line in text[2:8]] == ["scheme", "sent", "cmt", "cmt-pf", "none", "all"]


def test_the_answer_compares_schemes_under_the_same_seeds(comparison: Comparison) -> None:
    sentences = answer(comparison)
    assert re.fullmatch(r"cmt shows \d+\.\d % of the frames\.", sentences[0])
    assert re.match(r"none shows \d+\.\d ± \d+\.\d percentage points more\.", sentences[2])
    same = replace(comparison, runs=comparison.of("cmt") + [
        replace(each, run=replace(each.run, scheme="twin")) for each in comparison.of("cmt")
    ])  # fmt: skip
    assert answer(same)[1] == "twin shows as many."
    assert "5 seeds are too few to decide whether cmt-pf shows more frames." in sentences


# 30 frames a second.
SHAPE = FrameFormat(64, 48, Fraction(30))


def test_panels_have_the_width_of_the_clip_and_a_label() -> None:
    fates = [Fate.GOOD] * 5 + [Fate.LOST, Fate.UNDECODABLE, Fate.LATE]
    strip = fate_strip(fates)
    assert 'viewBox="0 0 8 100"' in strip
    assert re.findall(r'x="(\d)" y="(\d+)" width="(\d)".*?--(\w+)\)', strip) == [
        ("0", "70", "5", "good"),
        ("5", "0", "1", "lost"),
        ("6", "45", "1", "undecodable"),
        ("7", "22", "1", "late"),
    ]
    curve = quality_panel(np.array([10.0, 30.0, 20.0]), scale_of([10.0, 30.0]))
    places = [float(y) for y in re.findall(r"\d,([\d.]+)", curve)]
    assert places[0] > places[2] > places[1]
    path = {"kbps": [10.0, 20.0], "dropped": [0, 2]}
    drawn = path_panel(path, {"width_s": 1.0, "begins_s": 0.5}, 60, SHAPE, scale_of([20.0], from_zero=True))
    assert '<rect x="15.00"' in drawn
    assert drawn.count("<rect") == 1
    assert list(ticks(60, SHAPE)) == [(0.0, "0 s"), (25.0, "0.5 s"), (50.0, "1 s"), (75.0, "1.5 s")]


def test_a_long_clip_keeps_its_worst_frames_in_the_curve() -> None:
    values = np.full(108_000, 36.0)
    values[77_777] = 5.0
    curve = quality_panel(values, scale_of([5.0, 36.0]))
    assert len(re.findall(r"[\d.]+,[\d.]+", curve)) <= 1500
    lowest = max(float(y) for y in re.findall(r",([\d.]+)", curve))
    assert lowest > 90


@pytest.fixture(scope="module")
def page(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    settings = Settings(f"clip {HOSTILE}", f"anabranch video compare '{HOSTILE}'", HOSTILE, [("Clip", HOSTILE)])
    assert write_page(comparison, folder / PAGE, folder, settings, lambda: None) == []
    return folder / PAGE


def test_text_of_others_is_escaped(page: Path) -> None:
    text = page.read_text()
    assert HOSTILE not in text
    assert "<img" not in text
    # Only the page's own elements: clips, their data, and one script.
    assert len(re.findall(r"<script", text)) == len(re.findall(r"</script", text)) == 5 + 1 + 1


def test_data_for_the_script_ends_no_element(comparison: Comparison) -> None:
    data = _data(comparison, [Clip(HOSTILE, "about", "", {"fates": "g"})])
    assert "<" not in data
    assert json.loads(data)["clips"][0]["label"] == HOSTILE


def test_a_page_names_its_script_and_loads_nothing(page: Path) -> None:
    text = page.read_text()
    assert "default-src &#39;none&#39;; script-src &#39;sha256-" in text
    assert not re.search(r"(?:src|href)=\"?(?:https?:)?//", text)


def test_clips_that_do_not_fit_are_omitted_and_reported(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "MAX_CLIP_BYTES", 100_000)
    settings = Settings("clip", "command", "scenario", [])
    notes = write_page(comparison, tmp_path / PAGE, tmp_path, settings, lambda: None)
    assert len(notes) == 1
    assert "are left out" in notes[0]
    assert notes[0] in (tmp_path / PAGE).read_text()


def test_a_click_shows_that_frame_of_every_run(page: Path, browser: Browser) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text))
    opened.goto(page.as_uri())
    opened.wait_for_selector("html[data-ready]")
    strip = opened.locator(".fates .drawing").first
    box = strip.bounding_box()
    assert box is not None
    strip.click(position={"x": box["width"] * 28.5 / 56, "y": 5})
    assert opened.locator("#at").text_content() == "28 (B), 0.93 s"
    opened.keyboard.press("ArrowRight")
    assert opened.locator("#at").text_content() == "29 (B), 0.97 s"
    times = opened.evaluate("[...document.querySelectorAll('video')].map(video => video.currentTime)")
    assert times == [pytest.approx(29.5 / 30)] * len(times)
    readouts = opened.locator("[data-readout]").all_text_contents()
    assert readouts[0].startswith("good, PSNR ")
    assert readouts[-1] == "lost, black is shown"
    opened.locator("#metric").select_option("vmaf")
    assert opened.locator("[data-metric=vmaf]:visible").count() == 3
    assert opened.locator("[data-metric=psnr_db]:visible").count() == 0
    assert opened.evaluate("document.documentElement.scrollWidth") == 1280
    assert complaints == []
    context.close()
