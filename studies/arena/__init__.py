"""Compares `anabranch` with other multipath stacks over the same emulated links, in network namespaces."""
