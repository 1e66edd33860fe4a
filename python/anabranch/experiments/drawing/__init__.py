"""The figures of the papers, in the papers' axes and this package's style, with the data that they show."""
