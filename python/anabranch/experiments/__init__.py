"""Runs experiments and judges claims about them: points x schemes x seeds, measures, rules, verdicts and a page.

A folder contains the experiments and claims as TOML files. The steps are: experiment, sweeps (of the default setting,
of variants of unknown values and of ablations), samples, quantities, claims, verdicts, pages. `anabranch.papers`
reproduces five publications this way. The book's chapter "An experiment with a claim" is the tutorial.
"""

from anabranch.experiments.running import run_experiments

__all__ = ["run_experiments"]
