"""Statements of the book and the example."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

from transfer_rig import HANGS_AFTER_S, environment, run_script

import anabranch

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = (ROOT / "docs/src/python-transfers.md").read_text(encoding="utf-8")


def test_program_of_the_book_prints_its_output():
    program, printed = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", CHAPTER, re.DOTALL)[0]
    done = run_script(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_the_book_has_all_keywords_with_their_defaults():
    table = re.search(r"\| keyword \|.*?\n\n", CHAPTER, re.DOTALL).group()
    described = {name: row for row in table.strip().splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    described.pop("connect", None)
    described.pop("listen", None)
    keywords = {}
    for function in (anabranch.connect, anabranch.listen):
        parameters = inspect.signature(function).parameters.values()
        keywords |= {
            one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY and one.name != "local"
        }
    assert described.keys() == keywords.keys()
    for name, default in keywords.items():
        if default is not None:
            shown = f"{default >> 20} MiB" if name.endswith("_bytes") else f"{default}".removesuffix(".0")
            assert shown in described[name].split("|")[3], name


def test_the_example_sends_a_file_over_two_links(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(range(256)) * 2000)
    example = [sys.executable, str(ROOT / "examples/python/two_links.py"), "--file", str(file)]
    done = subprocess.run(
        example, env=environment(), capture_output=True, text=True, timeout=HANGS_AFTER_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("you said: hello over two links\n  127.0.1.1 - 127.0.2.1:")
    assert done.stdout.endswith("0.51 MB arrived unchanged with braid.\n")


def test_example_reports_errors(tmp_path):
    example = [sys.executable, str(ROOT / "examples/python/two_links.py")]
    for arguments, says in [
        (["--file", str(tmp_path / "none")], "none: No such file or directory"),
        (["--scheme", "cmtt"], "did you mean `cmt`"),
    ]:
        done = subprocess.run(
            [*example, *arguments],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=HANGS_AFTER_S,
            check=False,
        )
        assert done.returncode == 1
        assert says in done.stderr
        assert "Traceback" not in done.stderr
