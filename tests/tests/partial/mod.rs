//! Partial reliability (RFC 3758, RFC 7496): abandoned messages, the times of abandonment, and progress without waits.

mod congestion;
mod failover;
mod forward;
mod limits;
mod negotiation;
mod priority;
mod rig;
mod schemes;
