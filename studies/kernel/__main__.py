"""Measures `anabranch` beside the kernel's TCP and MPTCP, in network namespaces.

    make study NAME=kernel ARGS='transfers --rounds 5'

Needs root on Linux with MPTCP (`net.mptcp.enabled`), and `ip`, `tc` with tbf, and `ethtool`. Rates and queues are
tbf's; delays and losses are those of a program between two interfaces (`bridge.py`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from . import shares, transfers


def problem(program: Path) -> str | None:
    """Returns the missing requirement with its remedy, or `None`."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "network namespaces need root on Linux: run it as root there"
    missing = [name for name in ("ip", "tc", "ethtool", "nsenter", "unshare") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not found: install iproute2, ethtool and util-linux"
    if not program.is_file():
        return f"{program} is missing: build it with cargo build --release --bin anabranch, or name it with --anabranch"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="studies kernel", description=__doc__.splitlines()[0])
    parser.add_argument(
        "what",
        nargs="?",
        default="transfers",
        choices=["transfers", "shares"],
        help="transfers: times of a file over two links; shares: shares of one link",
    )
    parser.add_argument("--anabranch", type=Path, default=Path("target/release/anabranch"))
    parser.add_argument("--schemes", default="bonded,braid", help="separated by commas (bonded,braid)")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    program = options.anabranch.resolve()
    if (wrong := problem(program)) is not None:
        print(f"studies kernel: {wrong}", file=sys.stderr)
        return 2
    run = transfers.run if options.what == "transfers" else shares.run
    run(str(program), options.schemes.split(","), options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
