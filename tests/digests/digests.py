"""Compares runs of the simulator with the SHA-256 digests that are stored beside this file.

Every scheme is run under every profile in each scenario of this folder, and every component once with the scheme that
it is most often added to. Two digests are kept of each run: one of all packets, with the time and place of their
arrival, and one of the numeric measures that the run reports. A change that only restructures the code leaves all of
them as they are. If no digest of packets is requested, the simulator computes links ahead where possible. Each run is
therefore repeated without a digest, and must report the same result.

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

# Numeric measures that `figures_sha256` covers, by their owner in the result.
MEASURES = {
    "run": (
        "goodput_kbps",
        "duration_s",
        "retransmissions",
        "timeouts",
        "heartbeat_timeouts",
        "fast_retransmits",
        "spurious_retransmissions",
        "peak_reorder_bytes",
        "rwnd_blocked_s",
        "overruled_picks",
    ),
    "path": ("data_packets", "bytes", "drops", "sent_packets"),
    "flow": ("goodput_kbps", "delivered_bytes", "transfer_s"),
}
ABSENT_IF_ZERO = ("overruled_picks",)


def lists():
    """Scenario, profile and list of schemes of each call of the simulator."""
    for scenario in SCENARIOS:
        for profile in PROFILES:
            yield scenario, profile, "all"
        yield scenario, "net", ",".join(COMPONENTS)


def figures(result):
    """Yields a line for each measure of a result: owner, name and value.

    Order, text and other keys of the result have no influence, so that it can be restructured.
    """
    owners = {"run": [result], "path": result["paths"], "flow": result["flows"]}
    for kind, names in MEASURES.items():
        for index, owner in enumerate(owners[kind]):
            for name in names:
                if name not in owner and name not in ABSENT_IF_ZERO:
                    sys.exit(f"a {kind} of the result has no {name}: correct MEASURES in {__file__}")
                yield f"{kind}[{index}].{name}={owner.get(name, 0)!r}"


def figures_sha256(result):
    return hashlib.sha256("\n".join(figures(result)).encode()).hexdigest()


def runs(program):
    for scenario, profile, schemes in lists():
        command = [program, "run", str(HERE / f"{scenario}.toml"), "--profile", profile, "--schemes", schemes]
        ahead = {result["scheme"]: result for result in results(command)}
        for result in results([*command, "--digest"]):
            packets_sha256 = result.pop("digest")
            if ahead.get(result["scheme"]) != result:
                sys.exit(f"{' '.join(command)}: {result['scheme']} has another result with --digest than without")
            yield (scenario, profile, result["scheme"], packets_sha256, figures_sha256(result))


def results(command):
    ended = subprocess.run([*command, "--json", "--quiet"], capture_output=True, text=True, check=False)
    lines = ended.stdout.splitlines()
    # An incomplete transfer is a result too, with status 1. Other failures print no result.
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
