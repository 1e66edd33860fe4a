"""Events in the format of qlog, from this package and from QUIC implementations, as timelines."""
