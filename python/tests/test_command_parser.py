"""Parser of the Python commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.command.parser import Parser


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("~/out", "/home/ada/out"),
        ("~", "/home/ada"),
        ("~grace/out", "~grace/out"),
        ("./~/out", "~/out"),
        ("out/~", "out/~"),
    ],
)
def test_leading_tilde_of_an_option_becomes_home_folder(
    typed: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    parser = Parser()
    parser.add_argument("--out", type=Path)
    assert parser.parse_args([f"--out={typed}"]).out == Path(expected)
