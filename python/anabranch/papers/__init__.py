"""Reproduces five papers: their experiments and claims are data, and verdicts on them are computed.

`python -m anabranch papers` lists, shows and reproduces them. The way is: experiment, sweeps (as the paper has it, with
variants of what it leaves open, with ablations), measured samples, quantities, claims, verdicts, pages. The book's
chapter "The papers" has the definitions.
"""
