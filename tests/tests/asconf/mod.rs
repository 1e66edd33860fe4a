//! Address changes of running associations (RFC 5061), in authenticated chunks (RFC 4895).

mod changes;
mod forged;
mod random;
mod refusals;
mod rig;
