//! Delivery-rate samples of a path (draft-ietf-ccwg-bbr section 4.1, draft-cheng-iccrg-delivery-rate-estimation-02), and the limit
//! of its sending meanwhile.

use crate::time::{Rate, Span, Time};
use crate::units::ChunkBytes;

/// Limit of a path's sending. A rate measured under [`Window`](Self::Window) or [`Pacing`](Self::Pacing) is that of the path; under
/// the others the path could have carried more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limiter {
    /// Congestion control: the window or the in-flight cap is reached, or Max.Burst packets were sent.
    #[default]
    Window,
    /// Rate of the path's pacing.
    Pacing,
    /// Peer's window without room for the next chunk.
    PeerWindow,
    /// Policies: data waits, the path has room, and the scheduler, the retransmission policy or buffer sharing assigned it no data.
    Scheduler,
    /// No waiting data.
    Application,
}

impl Limiter {
    /// Returns `true` if congestion control of the path limits it.
    pub fn is_congestion_control(self) -> bool {
        matches!(self, Limiter::Window | Limiter::Pacing)
    }
}

/// Values recorded when a transmission is sent, from which its acknowledgement makes a [`DeliverySample`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendStamps {
    /// Send time of the transmission (P.send_time).
    pub sent_at: Time,
    /// Send time of the latest delivered transmission of the path before it, or of the first one after an idle period
    /// (P.first_send_time).
    pub first_sent_at: Time,
    /// Bytes that the path had delivered (P.delivered).
    pub delivered: ChunkBytes,
    /// Time of the latest delivery; after an idle period, send time of the first transmission (P.delivered_time).
    pub delivered_at: Time,
    /// Bytes in flight on the path, including this transmission (P.tx_in_flight).
    pub in_flight: ChunkBytes,
    /// Bytes that had been declared lost on the path (P.lost).
    pub lost: ChunkBytes,
    /// Limit of the path (P.is_app_limited, with more cases). A limit other than congestion control is reported until all bytes in
    /// flight at that time have been delivered.
    pub limiter: Limiter,
}

/// Sample of a path's delivery rate from one SACK. It belongs to the newest acknowledged transmission whose chunk was sent only
/// once, because the path of other chunks is ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliverySample {
    /// Stamps of the newest transmission. A round trip ends when its `delivered` reaches the bytes that the path had delivered when
    /// the round trip started.
    pub stamps: SendStamps,
    /// Bytes that the path has delivered since the transmission was sent, including the transmission.
    pub delivered: ChunkBytes,
    /// Time in which these bytes were sent.
    pub send_elapsed: Span,
    /// Time in which these bytes were acknowledged.
    pub ack_elapsed: Span,
    /// Bytes declared lost on the path since the transmission was sent.
    pub lost: ChunkBytes,
    /// Time from the transmission until now; `None` if the SACK arrived on another path, whose delay differs.
    pub rtt: Option<Span>,
    /// Bytes divided by the longer of the two times. `None` if that time is zero or below the minimum RTT of the path: the
    /// acknowledgements were delayed and arrived together.
    pub rate: Option<Rate>,
}

impl DeliverySample {
    /// Returns the longer of the two times.
    pub fn interval(&self) -> Span {
        self.send_elapsed.max(self.ack_elapsed)
    }

    /// Returns the limit of the path when the newest transmission was sent.
    pub fn limiter(&self) -> Limiter {
        self.stamps.limiter
    }
}
