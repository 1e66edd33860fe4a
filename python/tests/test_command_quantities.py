"""Sizes, times and numbers of options."""

import argparse

import pytest

from anabranch.command.quantities import positive, rate_mbps, size_bytes, time_s, time_within, times_between


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5.0), ("0.5", 0.5), ("5s", 5.0), ("250 ms", 0.25), ("2min", 120.0), ("1h", 3600.0), ("7us", 7e-6)],
)
def test_time_without_a_unit_is_in_seconds(text: str, seconds: float) -> None:
    assert time_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("17", 17),
        ("64K", 65_536),
        ("64k", 65_536),
        ("64 KiB", 65_536),
        ("64kB", 64_000),
        ("1.5m", 1_572_864),
        ("1G", 2**30),
    ],
)
def test_size_without_a_unit_is_in_bytes(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "mbps"), [("100000", 0.1), ("100k", 0.1), ("8 Mbit", 8.0), ("1Gbit/s", 1000.0), ("1.5 mbit/s", 1.5)]
)
def test_rate_without_a_unit_is_in_bits_per_second(text: str, mbps: float) -> None:
    assert rate_mbps(text) == mbps


def test_two_times_are_separated_by_one_comma() -> None:
    assert times_between("1,2min") == (1.0, 120.0)
    for text in ("1", "1,2,3"):
        with pytest.raises(argparse.ArgumentTypeError, match="two times such as 10s,11s"):
            times_between(text)


@pytest.mark.parametrize("text", ["", "K", "-1", "1X", "ten", "1e30", "nan", "1.2.3", "9" * 30, "\u0663"])
def test_other_text_is_refused_with_examples(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="5s"):
        time_s(text)
    with pytest.raises(argparse.ArgumentTypeError, match="64K"):
        size_bytes(text)
    with pytest.raises(argparse.ArgumentTypeError, match="10Mbit"):
        rate_mbps(text)


def test_time_out_of_bounds_is_refused_with_both() -> None:
    assert time_within("5", 5, 10) == 5
    with pytest.raises(argparse.ArgumentTypeError, match="'4s' is not between 5s and 10s"):
        time_within("4s", 5, 10)


def test_positive_number_is_a_whole_one_within_bounds() -> None:
    assert [positive(text) for text in ("1", "100000")] == [1, 100_000]
    for text in ("", "0", "-1", "1.5", "100001", "9" * 5000, "\u0663"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number from 1 to 100000"):
            positive(text)
