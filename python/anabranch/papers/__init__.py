"""Five papers, whose experiments and claims are data for `anabranch.experiments`.

`anabranch papers` lists, shows and reproduces them. The book's chapter "The papers" has the definitions.
"""
