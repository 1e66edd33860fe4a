//! Partial reliability (RFC 3758, RFC 7496): what is given up, when, and that nothing waits for it.

mod congestion;
mod failover;
mod forward;
mod limits;
mod negotiation;
mod priority;
mod rig;
mod schemes;
