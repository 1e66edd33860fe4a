"""Events in the manner of qlog, of this package and of QUIC, as timelines."""
