//! Coded video at the level of the network: frames of a trace, their packets, and the outcome of each frame by the arrival of its
//! packets. The book defines all of it (chapter "Real-time video").

mod fates;
mod frame;
mod measures;
mod packets;
mod plan;
mod trace;

pub use fates::{Delivery, Fate, Playout, completions, deliveries};
pub use frame::{Frame, FrameType};
pub use measures::{Delays, FateCounts, TypeCounts, VideoResult};
pub use packets::{MOST_PACKETS, MOST_PAYLOAD_BYTES, Packet, TooManyPackets, packetise};
pub use plan::{VideoError, VideoPlan};
pub use trace::{FrameTrace, MOST_FRAMES, TraceFault};
