//! Delivery-rate samples (draft-ietf-ccwg-bbr section 4.1, draft-cheng-iccrg-delivery-rate-estimation-02): how fast a path has
//! delivered, and what had kept more from being sent.

use crate::time::{Rate, Span, Time};
use crate::units::ChunkBytes;

/// What keeps a path from sending more. A rate measured meanwhile is the path's own only under [`Window`](Self::Window) and
/// [`Pacing`](Self::Pacing); under the others the path could have carried more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limiter {
    /// Congestion control: the window is full, or as much in flight as the cap lets be; or Max.Burst packets have left.
    #[default]
    Window,
    /// The path's rate.
    Pacing,
    /// The peer's window has no room for the next chunk.
    PeerWindow,
    /// The policies: data waits, the path has room, and the scheduler, the retransmission policy or the buffer's shares gave it
    /// nothing.
    Scheduler,
    /// Nothing waits to be sent.
    Application,
}

impl Limiter {
    /// Whether the path, and not something beside it, sets the pace.
    pub fn is_congestion_control(self) -> bool {
        matches!(self, Limiter::Window | Limiter::Pacing)
    }
}

/// What is noted of a path when a transmission leaves on it, and makes a [`DeliverySample`] of its acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendStamps {
    /// When the transmission left (P.send_time).
    pub sent_at: Time,
    /// When the latest delivered transmission of the path left before it, or the first one after an idle time
    /// (P.first_send_time).
    pub first_sent_at: Time,
    /// Bytes that the path had delivered (P.delivered).
    pub delivered: ChunkBytes,
    /// When the path had delivered the latest of them; after an idle time, when the first transmission left (P.delivered_time).
    pub delivered_at: Time,
    /// Bytes in flight on the path, this transmission's included (P.tx_in_flight).
    pub in_flight: ChunkBytes,
    /// Bytes that had been declared lost on the path (P.lost).
    pub lost: ChunkBytes,
    /// What limited the path (P.is_app_limited, with more cases): something beside congestion control until all that was in
    /// flight then has been delivered.
    pub limiter: Limiter,
}

/// What a SACK tells of the rate at which a path delivers. It is taken from the newest transmission acknowledged whose chunk was
/// sent only once: nothing else is known for certain to have come this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliverySample {
    /// The newest transmission's stamps. A round trip is over when its `delivered` reaches what the path had delivered as the
    /// round began.
    pub stamps: SendStamps,
    /// Bytes that the path has delivered since it left, itself included.
    pub delivered: ChunkBytes,
    /// The time in which they were sent.
    pub send_elapsed: Span,
    /// The time in which they were acknowledged.
    pub ack_elapsed: Span,
    /// Bytes declared lost on the path since it left.
    pub lost: ChunkBytes,
    /// From its leaving until now; `None` if the SACK came back on another path, whose delay is another.
    pub rtt: Option<Span>,
    /// Bytes over the longer of the two times; `None` if that is shorter than any round trip of the path, or nothing: then
    /// acknowledgements were held up and came together.
    pub rate: Option<Rate>,
}

impl DeliverySample {
    /// The longer of the two times.
    pub fn interval(&self) -> Span {
        self.send_elapsed.max(self.ack_elapsed)
    }

    /// What limited the path when the newest transmission left.
    pub fn limiter(&self) -> Limiter {
        self.stamps.limiter
    }
}
