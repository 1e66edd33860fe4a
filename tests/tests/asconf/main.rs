//! Addresses change while associations are up (RFC 5061), in chunks that are authenticated (RFC 4895).

mod changes;
mod forged;
mod random;
mod refusals;
mod rig;
