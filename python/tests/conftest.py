"""Fixtures and settings that several test files share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from anabranch.video import CodedClip

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_configure() -> None:
    """Restores the default handler of SIGINT, which shells set to be ignored for tests in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium here to open pages in: apt-get install chromium")


@pytest.fixture(scope="session", autouse=True)
def own_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a key that is authorised to connect to itself, since associations of the tests are protected."""
    folder = tmp_path_factory.mktemp("keys")
    os.environ["ANABRANCH_HOME"] = str(folder)
    key = keys_command("show").splitlines()[0]
    keys_command("add", key)
    return folder


def keys_command(*arguments: str) -> str:
    command = "import sys; from anabranch.command import main; sys.exit(main(sys.argv[1:]))"
    run = [sys.executable, "-c", command, "keys", *arguments]
    return subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium. Skips the test if it is not installed."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: pip install playwright")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=_chromium(), headless=True, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def coded_clip(tmp_path_factory: pytest.TempPathFactory) -> CodedClip:
    """Clip of 56 frames of photographs, encoded: six groups and two further frames."""
    from anabranch import video

    return video.write_coded("photographs", tmp_path_factory.mktemp("video"), reading=video.ReadOptions(frames=56))


@pytest.fixture(scope="session")
def decoded_clip(coded_clip: CodedClip, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Same clip, decoded completely."""
    from anabranch.video.encoder import decode

    return decode(
        coded_clip.folder / "stream.m4v", coded_clip.source, tmp_path_factory.mktemp("video") / "all.yuv"
    ).path
