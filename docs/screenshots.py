"""Makes screenshots of the book, of a report and of the papers' page: 1280 and 390 px wide, light and dark.

    python3 docs/screenshots.py [--out out/screenshots] [PAGE...]

Needs Chromium. If no PAGE is given, the script uses the pages that `make book`, `make demo` and `make papers` have
written into `out`, and prints a line for each missing page.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "out/book/introduction.html",
    "out/book/move-files.html",
    "out/book/compare-schemes.html",
    "out/book/which-scheme.html",
    "out/demo/report.html",
    "out/papers/index.html",
)
SIZES = ((1280, 1600), (390, 1600))
# Values of Chromium's option for the reader's colour scheme.
SCHEMES = {"light": 1, "dark": 0}
TIME_OUT_S = 60


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if command := shutil.which(name):
            return command
    return None


def shoot(command, page, file, size, scheme):
    """Takes one screenshot. Returns `False` if Chromium wrote no file."""
    with tempfile.TemporaryDirectory() as profile:
        words = [command, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        words += [f"--user-data-dir={profile}", f"--blink-settings=preferredColorScheme={scheme}"]
        words += [f"--window-size={size[0]},{size[1]}", f"--screenshot={file}", page.resolve().as_uri()]
        subprocess.run(words, check=False, capture_output=True, timeout=TIME_OUT_S)
    return file.exists()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "screenshots")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    options = parser.parse_args()
    command = chromium()
    if command is None:
        print("Chromium is missing: install chromium", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    missing = 0
    for page in options.pages or [ROOT / name for name in PAGES]:
        if not page.exists():
            print(f"{page}: not there, left out")
            continue
        for size in SIZES:
            for name, scheme in SCHEMES.items():
                file = options.out / f"{page.parent.name}-{page.stem}-{size[0]}-{name}.png"
                file.unlink(missing_ok=True)
                if shoot(command, page, file, size, scheme):
                    print(file)
                else:
                    print(f"{page}: Chromium made no screenshot", file=sys.stderr)
                    missing += 1
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
