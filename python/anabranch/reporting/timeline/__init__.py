"""The timeline of runs: what traces hold, thinned out so that it fits a page, as the page's script reads it."""
