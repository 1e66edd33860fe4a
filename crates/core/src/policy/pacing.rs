//! Limits of a path beside its window.

use crate::time::Rate;
use crate::units::ChunkBytes;

/// Limits of a path beside its window: the rate of packets with DATA, first transmissions and retransmissions alike, and the bytes
/// in flight. SACKs, HEARTBEATs and other control chunks are not paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pacing {
    /// Rate of chunk bytes ([`ChunkBytes`], the unit of windows and delivery rates); `None` lets packets be sent as soon as windows
    /// permit. A burst is one packet, plus the bytes of the rate during the driver's timer delay
    /// ([`Profile::pacing_timer`](crate::profile::Profile)). A paced path has no other limit on bursts. Core raises the rate to one
    /// largest chunk per [`Profile::rto_max`](crate::profile::Profile), so that no packet waits forever.
    pub rate: Option<Rate>,
    /// Maximum number of bytes in flight; `None` leaves the limit to the window. A packet may be sent while fewer bytes are in
    /// flight, as with a window. Core raises the cap to one largest chunk.
    pub in_flight_cap: Option<ChunkBytes>,
}

impl Pacing {
    /// No limits beside the window.
    pub const OFF: Pacing = Pacing { rate: None, in_flight_cap: None };
}
