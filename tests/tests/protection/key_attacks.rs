//! Peers and others that do not want keys to come about.
