"""Measures `anabranch` beside the kernel's TCP and MPTCP, in network namespaces."""
