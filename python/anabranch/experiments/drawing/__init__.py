"""The figures of the sources, in the sources' axes and this package's style, with the data that they show."""
