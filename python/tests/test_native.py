"""Native module: scenarios and schemes as text, and runs in batches."""

from __future__ import annotations

import contextlib
import json
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from anabranch import _native
from anabranch.errors import RunError, ScenarioError, SchemeError

SCENARIO = """
[run]
duration = "1 s"
[[path]]
name = "fast"
rate = "4 Mbit/s"
delay = "10 ms"
loss = 0.01
[[path]]
name = "slow"
rate = "1 Mbit/s"
delay = "30 ms"
"""
# No test waits for the end of such a run.
ENDLESS = SCENARIO.replace("1 s", "4000000 s")
SENDS_A_FILE = SCENARIO.replace("[run]", "[run]\nstop = 'transfer'") + "[[flow]]\nkind = 'file'\npath = 'payload.bin'\n"


def prepared(text: str = SCENARIO, scheme: str = "cmt", **more: Any) -> _native.Prepared:
    return _native.Prepared(text, scheme, file="two-path.toml", **more)


def results_of(jobs: list[tuple[_native.Prepared, int]], **more: Any) -> dict[int, dict[str, Any]]:
    results: dict[int, dict[str, Any]] = {}
    _native.run_batch(jobs, lambda index, text: results.update({index: json.loads(text)}), **more)
    return results


def test_the_engine_names_itself() -> None:
    engine = _native.engine()
    assert set(engine) == {"version", "commit", "fingerprint"}
    int(engine["fingerprint"], 16)
    assert len(engine["fingerprint"]) == 64
    commit = engine["commit"].removesuffix("-dirty")
    assert commit == "unknown" or len(commit) == 40


def test_a_resolved_scenario_has_every_default_and_resolves_to_itself() -> None:
    text = _native.resolve(SCENARIO, "two-path.toml")
    assert 'profile = "rfc9260"' in text
    assert "recv_buffer" in text
    assert _native.resolve(text, "two-path.toml") == text


def test_values_are_put_in_as_toml_or_as_words() -> None:
    changes = [("path.slow.loss", "0.25"), ("run.duration", "2 s"), ("run.profile", '"ns2"')]
    text = _native.resolve(SCENARIO, "two-path.toml", changes)
    assert "rate = 0.25" in text
    assert 'duration = "2 s"' in text
    assert 'profile = "ns2"' in text


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("[run", [], ["two-path.toml:1:5", "not valid TOML"]),
        ("", [], ["missing key `run.duration`", "missing key `path`"]),
        (SCENARIO.replace("delay", "dealy"), [], ["two-path.toml:7:1", "did you mean `delay`?"]),
        (
            SCENARIO,
            [("path.fast.los", "0.1")],
            ["two-path.toml: path.fast.los=0.1: unknown key", "did you mean `loss`?"],
        ),
        (SCENARIO, [("path.fast.loss", "2")], ["path.fast.loss=2", "expected a number from 0 to 1"]),
        (SCENARIO, [("", "2")], ["two-path.toml: =2: `` is not the key of a value"]),
    ],
)
def test_faulty_scenario_is_reported_with_place_and_remedy(
    text: str, changes: list[tuple[str, str]], expected: list[str]
) -> None:
    with pytest.raises(ScenarioError) as raised:
        _native.resolve(text, "two-path.toml", changes)
    for part in expected:
        assert part in str(raised.value)


def test_lists_of_schemes_are_expanded_and_have_none_twice() -> None:
    assert _native.schemes_of(SCENARIO, "s", "sctp, cmt(trigger=4),sctp") == ["sctp", "cmt(trigger=4)"]
    assert _native.schemes_of(SCENARIO, "s", "cmt,all")[:2] == ["cmt", "sctp"]
    named = SCENARIO + '[scheme.mine]\nexpression = "cmt-pf+ecf"\n'
    assert _native.schemes_of(named, "s", "mine") == ["mine"]
    for wrong in ["cmtt", "", "cmt(trigger=0)", "mine"]:
        with pytest.raises(SchemeError):
            _native.schemes_of(SCENARIO, "s", wrong)


def test_cards_describe_schemes_and_components() -> None:
    names = {card["name"] for card in json.loads(_native.cards())}
    assert {"cmt", "sctp", "ecf"} <= names


def test_invalid_jobs_are_refused_before_the_first_run() -> None:
    with pytest.raises(SchemeError, match="unknown scheme `cmtt`, did you mean `cmt`"):
        prepared(scheme="cmtt")
    with pytest.raises(ScenarioError, match=r"two-path\.toml: `run\.profile`: unknown profile `rfc`"):
        prepared(SCENARIO.replace("[run]", "[run]\nprofile = 'rfc'"))
    with pytest.raises(SchemeError, match=r"two-path\.toml: flow `.*`: unknown scheme `cm`"):
        prepared(SCENARIO + "[[flow]]\nscheme = 'cm'\n")


def test_files_of_flows_are_looked_for_in_the_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"payload\.bin: "):
        prepared(SENDS_A_FILE, folder=tmp_path)
    (tmp_path / "payload.bin").write_bytes(bytes(10_000))
    result = results_of([(prepared(SENDS_A_FILE, folder=tmp_path), 1)])[0]
    assert result["flows"][0]["delivered_bytes"] == 10_000


def test_a_prepared_scenario_names_its_scheme_and_stays_in_its_process() -> None:
    assert prepared(scheme="cmt( trigger = 4 )").scheme == "cmt(trigger=4)"
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(prepared())


def test_results_match_their_jobs_for_any_number_of_threads() -> None:
    jobs = [(prepared(scheme=scheme), seed) for scheme in ["sctp", "cmt"] for seed in range(1, 11)]
    one = results_of(jobs, threads=1, digest=True)
    two = results_of(jobs, threads=3, digest=True)
    assert one == two
    assert sorted(one) == list(range(len(jobs)))
    for index, (job, seed) in enumerate(jobs):
        assert (one[index]["scheme"], one[index]["seed"]) == (job.scheme, seed)
    assert len({result["digest"] for result in one.values()}) == len(jobs)


def test_seeds_are_any_64_bit_number_and_nothing_else() -> None:
    largest = 2**64 - 1
    results = results_of([(prepared(), largest), (prepared(), 0), (prepared(), 2**63)])
    assert [results[index]["seed"] for index in range(3)] == [largest, 0, 2**63]
    for wrong in [2**64, -1]:
        with pytest.raises(OverflowError):
            results_of([(prepared(), wrong)])
    with pytest.raises(TypeError):
        results_of([(prepared(), 1.0)])  # type: ignore[list-item]


def test_a_batch_takes_no_jobs_and_no_zero_threads() -> None:
    assert results_of([]) == {}
    with pytest.raises(ValueError, match="zero"):
        results_of([(prepared(), 1)], threads=0)


def test_traces_and_captures_are_written_for_each_run(tmp_path: Path) -> None:
    results_of([(prepared(), 1), (prepared(), 2)], trace=tmp_path / "trace", pcap=str(tmp_path / "pcap"))
    assert sorted(path.name for path in (tmp_path / "trace").iterdir()) == ["cmt-seed1", "cmt-seed2"]
    assert sorted(path.name for path in (tmp_path / "pcap").iterdir()) == ["cmt-seed1.pcapng", "cmt-seed2.pcapng"]


def test_a_run_that_cannot_be_made_ends_the_batch_and_loses_none_before_it(tmp_path: Path) -> None:
    payload = tmp_path / "payload.bin"
    payload.write_bytes(bytes(1000))
    sends = prepared(SENDS_A_FILE, folder=tmp_path)
    payload.unlink()
    finished: list[int] = []
    jobs = [(prepared(), 1), (prepared(), 2), (sends, 1), *[(prepared(ENDLESS), seed) for seed in range(100)]]
    with pytest.raises(RunError, match=r"payload\.bin: No such file"):
        _native.run_batch(jobs, lambda index, _: finished.append(index), threads=1)
    assert finished == [0, 1]


def test_a_trace_that_cannot_be_written_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"file/cmt-seed1"):
        results_of([(prepared(), 1)], trace=tmp_path / "file")


def test_exception_of_done_ends_the_batch_and_running_runs() -> None:
    class FullDiskError(Exception):
        pass

    def done(index: int, text: str) -> None:
        raise FullDiskError(index)

    jobs = [(prepared(), 1), *[(prepared(ENDLESS), seed) for seed in range(100)]]
    with pytest.raises(FullDiskError):
        _native.run_batch(jobs, done, threads=2)


def test_callback_that_is_not_callable_is_refused_at_first_use() -> None:
    with pytest.raises(TypeError, match="not callable"):
        _native.run_batch([(prepared(), 1)], None)  # type: ignore[arg-type]


def interrupted(script: str) -> tuple[list[str], int]:
    """Runs a script, presses Ctrl-C after its first line, and returns its further output and its status."""
    preamble = f"""
        import json, signal, sys, time
        from anabranch import _native
        short = _native.Prepared({SCENARIO!r}, "cmt")
        endless = _native.Prepared({ENDLESS!r}, "cmt")
    """
    code = textwrap.dedent(preamble) + textwrap.dedent(script)
    with subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, "the script printed nothing"
        process.send_signal(signal.SIGINT)
        try:
            out, _ = process.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    return out.split(), process.returncode


def test_ctrl_c_drops_running_runs_and_raises_after_finished_ones() -> None:
    out, status = interrupted("""
        jobs = [(short, 1), (short, 2)] + [(endless, seed) for seed in range(1000)]
        # A call that Ctrl-C interrupts is repeated, and must not print again.
        finished, told = set(), []
        def done(index, text):
            finished.add(index)
            if len(finished) == 2 and not told:
                told.append(True)
                print("both are finished")
        try:
            _native.run_batch(jobs, done)
        except KeyboardInterrupt:
            print(*sorted(finished))
            sys.exit(130)
    """)
    assert (out, status) == (["0", "1"], 130)


def test_a_call_of_done_that_ctrl_c_comes_into_is_made_again() -> None:
    out, status = interrupted("""
        jobs = [(short, seed) for seed in range(20)]
        calls = []
        def done(index, text):
            calls.append(index)
            if len(calls) == 1:
                print("first call")
                time.sleep(60)
        try:
            _native.run_batch(jobs, done, threads=1)
        except KeyboardInterrupt:
            print(*calls)
            sys.exit(130)
    """)
    # Runs continued during the first call, and no finished run is lost.
    assert status == 130
    assert out[:2] == ["0", "0"]
    assert out[2:] == [str(index) for index in range(1, len(out) - 1)]


def test_a_handler_of_ones_own_may_end_a_batch_too() -> None:
    out, status = interrupted("""
        def handler(number, frame):
            raise TimeoutError("enough")
        signal.signal(signal.SIGINT, handler)
        try:
            print("ready")
            _native.run_batch([(endless, 1)], print)
        except TimeoutError as error:
            print(error)
    """)
    assert (out, status) == (["enough"], 0)


def test_other_threads_continue_during_runs() -> None:
    script = f"""
        import threading
        from anabranch import _native
        endless = _native.Prepared({ENDLESS!r}, "cmt")
        class Enough(Exception): pass
        def done(index, text): raise Enough
        short = _native.Prepared({SCENARIO!r}, "cmt")
        gone_on = threading.Event()
        other = threading.Thread(target=gone_on.set)
        started = threading.Event()
        def batch():
            started.set()
            _native.run_batch([(endless, 1)], print)
        threading.Thread(target=batch, daemon=True).start()
        started.wait()
        other.start()
        assert gone_on.wait(30)
        print("gone on", flush=True)
        import os; os._exit(0)
    """
    code = textwrap.dedent(script)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == "gone on\n", ended.stderr


def test_a_hundred_thousand_jobs_are_taken_and_can_be_left() -> None:
    class EnoughError(Exception):
        pass

    def done(index: int, text: str) -> None:
        if index >= 10:
            raise EnoughError

    job = prepared()
    with pytest.raises(EnoughError):
        _native.run_batch([(job, seed) for seed in range(100_000)], done)
