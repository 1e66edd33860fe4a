"""Looks of schemes: the same in every figure, and distinguishable."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest

from anabranch import _native
from anabranch.figures.style import DASH_PATTERNS, LIGHTNESS_STEP, Look, lightness, look_of, looks, path_looks

REGISTRY = [card["name"] for card in json.loads(_native.cards()) if card["kind"] == "scheme"]

# Schemes that the papers and the scenarios of this repository compare in one figure.
COMPARED = [
    ("sctp", "cmt", "cmt-pf"),
    ("cmt", "cmt-pf", "cmt-qa", "a-cmt", "db-cmt"),
    ("cmt", "cmt-pf", "cmt-dfr"),
    ("naive-cmt", "cmt", "smt-afr"),
    ("cmt", "cmt-pf", "mptcp-ns2"),
    ("sctp", "cmt", "cmt-pf", "bonded"),
    ("cmt", "cmt-rpv1", "cmt-rpv2", "mptcp-lia", "mptcp-olia", "mptcp-balia"),
]

# Machado, Oliveira, Fernandes 2009, severity 1, on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(color: str, sight: str) -> np.ndarray:
    """Returns CIE L*a*b* of a colour as perceived with this kind of colour vision."""
    parts = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SIGHT[sight]) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ seen / [0.95047, 1, 1.08883]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_every_scheme_of_the_registry_has_a_look_of_its_own():
    found = looks(REGISTRY)
    assert len({look.symbol for look in found.values()}) == len(REGISTRY)
    assert len({look.color for look in found.values()}) == len(REGISTRY)
    assert len({look.hatch for look in found.values()}) == len(REGISTRY)
    for scheme in REGISTRY:
        assert looks([scheme, *reversed(REGISTRY)])[scheme] == look_of(scheme) == found[scheme]


def test_schemes_differ_in_greyscale_by_line_style_and_by_markers():
    for pair in itertools.combinations(REGISTRY, 2):
        one, other = (look_of(scheme) for scheme in pair)
        apart = abs(lightness(one.color) - lightness(other.color))
        assert one.dash != other.dash or apart >= LIGHTNESS_STEP, pair
        assert (one.marker, one.filled) != (other.marker, other.filled), pair
        assert one.differs(other)


@pytest.mark.parametrize("compared", COMPARED, ids="/".join)
def test_compared_lines_differ_in_dashes_or_lightness(compared):
    for one, other in itertools.combinations([look_of(scheme) for scheme in compared], 2):
        apart = abs(lightness(one.color) - lightness(other.color))
        assert one.dash != other.dash or apart >= 15
        assert one.hatch != other.hatch


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_stay_apart_to_every_eye(sight):
    for one, other in itertools.combinations(REGISTRY, 2):
        distance = np.linalg.norm(lab(look_of(one).color, sight) - lab(look_of(other).color, sight))
        # A difference of two is visible in adjacent patches. Thin lines need more.
        assert distance >= 12, (one, other)


def test_every_colour_can_be_seen_on_white_paper():
    for look in [*looks(REGISTRY).values(), *path_looks(["a", "b", "c", "d", "e", "f", "g", "h"]).values()]:
        assert lightness(look.color) <= 73


def test_lightness_is_that_of_cie():
    assert lightness("#777777") == pytest.approx(50.034, abs=0.01)
    assert lightness("#ff0000") == pytest.approx(53.24, abs=0.05)
    assert lightness("#0a0a0a") == pytest.approx(2.74, abs=0.05)


def test_expression_has_colour_of_its_scheme_and_own_dashes_and_marker():
    for expression in ("cmt(trigger=4)", "cmt+rack", "cmt(rtx=rtx-asap,trigger=4)+rack"):
        assert look_of(expression).color == look_of("cmt").color
        assert look_of(expression).differs(look_of("cmt"))
    assert look_of("cmt-pf+rack").color == look_of("cmt-pf").color


def test_five_variants_and_their_scheme_are_distinguishable():
    compared = ["cmt", *(f"cmt(trigger={trigger})" for trigger in range(2, 7))]
    for one, other in itertools.combinations(looks(compared).values(), 2):
        assert one.differs(other)


def test_twelve_variants_still_have_markers_and_hatches_of_their_own():
    found = looks(["cmt", *(f"cmt(trigger={trigger})" for trigger in range(2, 13))])
    assert len({look.symbol for look in found.values()}) == 12
    assert len({look.hatch for look in found.values()}) == 12


def test_unknown_names_get_looks_and_displace_no_others():
    compared = [*REGISTRY, "eager", "eager-asap", "mine"]
    found = looks(compared)
    assert {scheme: found[scheme] for scheme in REGISTRY} == looks(REGISTRY)
    assert len({look.symbol for look in found.values()}) == len(compared)
    assert look_of("eager") == looks(["eager", "sctp"])["eager"] == looks(["sctp", "eager"])["eager"]


def test_looks_do_not_depend_on_the_order_of_schemes():
    compared = ["eager", "cmt(trigger=2)", "cmt", "cmt(trigger=3)", "lazy"]
    assert looks(compared) == looks(reversed(compared))
    assert list(looks(compared)) == compared


def test_looks_are_the_same_in_every_process():
    code = "from anabranch.figures.style import looks; print(looks(['cmt(trigger=4)', 'eager', 'cmt+rack']))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert printed == {f"{looks(['cmt(trigger=4)', 'eager', 'cmt+rack'])}\n"}


def test_looks_need_no_matplotlib():
    code = (
        "import sys; from anabranch.figures.style import look_of; look_of('cmt'); sys.exit('matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=True)


def test_eight_paths_differ_in_dashes_or_lightness():
    found = path_looks([f"path-{number}" for number in range(1, 9)])
    for one, other in itertools.combinations(found.values(), 2):
        assert one.differs(other)
    assert path_looks(["left", "right"])["right"] == found["path-2"]


def test_every_dash_can_be_drawn():
    assert {look.dash for look in looks(REGISTRY).values()} <= set(DASH_PATTERNS)
    assert Look("#000000", "solid", "o").filled
