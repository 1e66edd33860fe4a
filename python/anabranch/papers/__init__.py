"""The five papers, reproduced: their experiments and claims as data, and what becomes of them here.

`python -m anabranch papers` lists, shows and reproduces them. The way is: experiment, sweeps (as the paper has it, with
variants of what it leaves open, with ablations), measured samples, quantities, claims, verdicts, pages. The book's
chapter "The papers" has the definitions.
"""
