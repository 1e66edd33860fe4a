"""Whether a scheme does harm: to the goodput of one path, to other flows, to links, to small messages."""
