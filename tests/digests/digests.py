"""Compares runs of the simulator with the SHA-256 digests that are stored beside this file.

Every scheme is run under every profile in each scenario of this folder, and every component once with the
scheme that it is most often added to. Two digests are kept of each run: one of all packets, with the time and
place of their arrival, and one of the figures that the run reports. A change that only restructures the code
leaves all of them as they are. Without a digest of packets the simulator computes links ahead where it can, so
each run is made once more without, and has to report the same figures.

Usage: digests.py check | store [--anabranch PROGRAM]
"""

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STORED = HERE / "digests.tsv"
HEADER = ("scenario", "profile", "scheme", "packets_sha256", "figures_sha256")
SCENARIOS = ("lossy", "outage", "asymmetric", "file")
PROFILES = ("rfc9260", "ns2", "net")
# Components are run under one profile.
COMPONENTS = (
    "cmt+round-robin",
    "cmt+weighted",
    "cmt+min-rtt",
    "cmt+min-rtt+opportunistic",
    "cmt+min-rtt+opportunistic(penalise=true)",
    "cmt+ecf",
    "cmt+blest",
    "cmt+sttf",
    "cmt+otias",
    "cmt+redundant",
    "cmt+min-rtt-var",
    "cmt+acpf",
    "cmt+stms",
    "cmt+dems",
    "cmt+min-rtt+xlink",
    "cmt+backup",
    "cmt+cubic",
    "cmt+bbr",
    "cmt+copa",
    "cmt+paced",
    "cmt+rack",
    "cmt-pf+rack+nr-sack",
    "cmt+nr-sack+split",
    "cmt+rescheduling",
    "bonded+nr-sack",
    "cmt(rtx=rtx-asap)",
    "cmt(rtx=rtx-ssthresh)",
    "cmt-qa(dds=false)",
)


def lists():
    """Scenario, profile and list of schemes of each call of the simulator."""
    for scenario in SCENARIOS:
        for profile in PROFILES:
            yield scenario, profile, "all"
        yield scenario, "net", ",".join(COMPONENTS)


def figures(value):
    """The scalars of a result in their order. Names of keys may change without a change of results."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key != "digest":
                yield from figures(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from figures(inner)
    else:
        yield json.dumps(value)


def runs(program):
    for scenario, profile, schemes in lists():
        command = [program, "run", str(HERE / f"{scenario}.toml"), "--profile", profile, "--schemes", schemes]
        ahead = {result["scheme"]: figures_sha256(result) for result in results(command)}
        for result in results([*command, "--digest"]):
            sha256 = figures_sha256(result)
            if ahead.get(result["scheme"]) != sha256:
                sys.exit(f"{' '.join(command)}: {result['scheme']} has other figures with --digest than without")
            yield (scenario, profile, result["scheme"], result["digest"], sha256)


def figures_sha256(result):
    return hashlib.sha256("\n".join(figures(result)).encode()).hexdigest()


def results(command):
    ended = subprocess.run([*command, "--json", "--quiet"], capture_output=True, text=True, check=False)
    lines = ended.stdout.splitlines()
    # A transfer that is given up is a result too, with status 1; anything else that goes wrong prints nothing.
    if not lines:
        sys.exit(f"{' '.join(command)}\nended with status {ended.returncode}: {ended.stderr}")
    return [json.loads(line) for line in lines]


def stored():
    lines = STORED.read_text(encoding="utf-8").splitlines()[1:]
    return {tuple(fields[:3]): tuple(fields[3:]) for fields in (line.split("\t") for line in lines)}


def store(made):
    rows = [HEADER, *made]
    STORED.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(made)} runs stored in {STORED.name}")


def check(made):
    expected = stored()
    found = {tuple(row[:3]): tuple(row[3:]) for row in made}
    wrong = []
    for run in sorted(expected.keys() | found.keys()):
        if run not in found or run not in expected:
            wrong.append(f"{' '.join(run)}: {'not run' if run not in found else 'not stored'}")
        elif expected[run] != found[run]:
            packets = expected[run][0] != found[run][0]
            wrong.append(f"{' '.join(run)}: other {'packets' if packets else 'figures, with the same packets'}")
    print(f"{len(found) - len(wrong)} of {len(expected)} runs are as stored")
    if wrong:
        print("\n".join(wrong))
        sys.exit("If results are meant to change, store them with `make digests-store` in a commit that says why.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("check", "store"))
    parser.add_argument("--anabranch", default="anabranch", metavar="PROGRAM", help="the program to run")
    options = parser.parse_args()
    made = list(runs(options.anabranch))
    (store if options.action == "store" else check)(made)


if __name__ == "__main__":
    main()
