"""Timeline of runs: the content of traces, thinned out to fit a page, in the format of the page's script."""
