"""Traces that the comparison of instructions writes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import instructions


def test_opportunities_carry_the_rate():
    lines = instructions.opportunities(10).splitlines()
    assert int(lines[-1]) == instructions.TRACE_S * 1000
    assert abs(len(lines) * 1504 * 8 / instructions.TRACE_S - 10e6) < 2000


def test_trace_replaces_the_rate_of_each_path_and_not_of_cross_traffic(tmp_path):
    written = instructions.traced(tmp_path, "scenarios/db-cmt-fig6.toml", "rates")
    lines = written.read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith('rate = "1 Mbit/s"') for line in lines) == 2
    assert not any(line.startswith('rate = "10 Mbit/s"') for line in lines)
    files = [line.split('"')[1] for line in lines if line.startswith("capacity = ")]
    assert len(files) == 2
    assert (tmp_path / files[0]).read_text(encoding="utf-8").startswith("0.0,10\n0.5,10\n")
