//! What limits a path beside its window.

use crate::time::Rate;
use crate::units::ChunkBytes;

/// What limits a path beside its window: how fast packets with DATA leave, first transmissions and later ones alike, and how much
/// may be in flight. SACKs, HEARTBEATs and other control chunks are not paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pacing {
    /// The rate of chunk bytes ([`ChunkBytes`], the unit of windows and delivery rates); `None` lets packets leave as soon as windows
    /// admit them. What leaves at once is one packet, and what the rate carries while the driver's timer may be late
    /// ([`Profile::pacing_timer`](crate::profile::Profile)). A paced path has no other limit on bursts. Core raises the rate to one largest chunk in
    /// [`Profile::rto_max`](crate::profile::Profile), so that nothing is held for ever.
    pub rate: Option<Rate>,
    /// The most that may be in flight; `None` leaves that to the window. A packet may begin while less than that is in flight, as
    /// with a window. Core raises it to one largest chunk.
    pub in_flight_cap: Option<ChunkBytes>,
}

impl Pacing {
    /// Windows alone decide.
    pub const OFF: Pacing = Pacing { rate: None, in_flight_cap: None };
}
