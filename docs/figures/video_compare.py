"""Draws the picture of the book's chapter on video from a page of `anabranch video compare`.

    python docs/figures/video_compare.py out/compared/comparison.html docs/src/video/compare.png

The picture shows the frame in which the runs differ most in PSNR. Needs Chromium, and the packages playwright and
pillow.
"""

import argparse
import io
import shutil
import sys
from pathlib import Path

WIDTH_PIXELS = 1280
COLOURS = 128
# The frame with the largest spread of PSNR among runs that show anything.
FRAME = """() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const spread = (frame) => {
    const values = data.clips.filter((clip) => clip.values.psnr_db).map((clip) => clip.values.psnr_db[frame]);
    return Math.max(...values) - Math.min(...values);
  };
  return [...Array(data.frames).keys()].reduce((best, frame) => (spread(frame) > spread(best) ? frame : best), 0);
}"""
SEEK = """(frame) => {
  const slider = document.getElementById("frame");
  slider.value = frame;
  slider.dispatchEvent(new Event("input"));
}"""
SEEN = """() => [...document.querySelectorAll("video")].every((video) => video.readyState > 1 && !video.seeking)"""


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if command := shutil.which(name):
            return command
    sys.exit("no Chromium here: apt-get install chromium")


def picture(page):
    """Returns the part of the page with the figures over time, as PNG."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        opened = browser.new_page(viewport={"width": WIDTH_PIXELS, "height": 1000})
        opened.goto(page.absolute().as_uri())
        opened.wait_for_selector("html[data-ready]")
        opened.evaluate(SEEK, opened.evaluate(FRAME))
        opened.wait_for_function(SEEN)
        data = opened.locator("#time").screenshot()
        browser.close()
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="comparison.html")
    parser.add_argument("out", type=Path, help="the PNG to write")
    options = parser.parse_args()
    from PIL import Image

    with Image.open(io.BytesIO(picture(options.page))) as image:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        image.convert("RGB").quantize(COLOURS).save(options.out, optimize=True)
    print(options.out)


if __name__ == "__main__":
    main()
