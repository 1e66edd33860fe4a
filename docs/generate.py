"""Writes the sources of the whole book: the pages of docs/src, and those that are generated.

    python3 docs/generate.py --anabranch .venv/bin/anabranch out/book-src

Generated are the cards of schemes and components, the compliance with RFC 9260, the table of the bug ledger, and from
the results in docs/results the chapters about the papers and the tables of the studies. The repository contains none of
the generated pages. The same sources and results give the same files.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "src"
RESULTS = ROOT / "docs" / "results"
PAPERS = RESULTS / "papers.json.xz"


def steps(anabranch, folder):
    """Returns the commands that write generated pages into the folder, by the name that progress shows."""
    python = anabranch.parent / "python"
    compliance = [sys.executable, str(ROOT / ".ci" / "check_rfc.py"), "--page", str(folder / "rfc9260.md")]
    return {
        "cards of schemes and components": [anabranch, "schemes", "--markdown", str(folder)],
        "compliance with RFC 9260": compliance,
        "bug ledger": [python, ROOT / "tests" / "ledger" / "ledger.py", "write", folder],
        "chapters about the papers, in about a minute": [anabranch, "papers", "book", str(PAPERS), str(folder)],
        # The Python beside the command has the package. `-m` finds the folder `studies` in the working directory.
        "tables of studies": [python, "-m", "studies.results", RESULTS, folder],
    }


def generate(anabranch, folder):
    """Replaces the folder with the sources of the book. Raises `CalledProcessError` if a command fails."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PAGES, folder)
    for name, command in steps(anabranch, folder).items():
        print(f"Generating: {name}", flush=True)
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--anabranch", required=True, help="command of the Python package, which has all subcommands")
    parser.add_argument("folder", type=Path, help="folder to write, which is replaced")
    options = parser.parse_args()
    try:
        command = Path(shutil.which(options.anabranch) or options.anabranch).absolute()
        generate(command, options.folder.resolve())
    except subprocess.CalledProcessError as error:
        print(
            f"docs/generate.py: {' '.join(map(str, error.cmd))} ended with status {error.returncode}", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
