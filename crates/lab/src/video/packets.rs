//! Division of coded frames into packets. A packet carries data of one frame, as in the traces of EvalVid.

use thiserror::Error;

use crate::video::Frame;

/// Maximum number of packets of a trace.
pub const MOST_PACKETS: u64 = 10_000_000;
pub use anabranch_scenario::MOST_PAYLOAD_BYTES;

/// A packet. Its number is its index in the order of transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Index of the frame in coding order.
    pub frame: usize,
    /// User bytes.
    pub size_bytes: u64,
}

/// Error about a trace with more than [`MOST_PACKETS`] packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "its frames take {packets} packets, more than {MOST_PACKETS}: give a larger `payload` or a shorter trace"
)]
pub struct TooManyPackets {
    /// Number of packets.
    pub packets: u64,
}

/// Returns packets, which are full except for the last one of each frame.
///
/// # Errors
/// Returns an error if there are more than [`MOST_PACKETS`].
pub fn packetise(frames: &[Frame], payload_bytes: u64) -> Result<Vec<Packet>, TooManyPackets> {
    let payload_bytes = payload_bytes.max(1);
    let total: u64 = frames.iter().map(|frame| frame.size_bytes.div_ceil(payload_bytes)).sum();
    if total > MOST_PACKETS {
        return Err(TooManyPackets { packets: total });
    }
    let of_frame = |(number, frame): (usize, &Frame)| {
        let size_bytes = frame.size_bytes;
        let at = (0..size_bytes.div_ceil(payload_bytes)).map(move |index| index * payload_bytes);
        at.map(move |at| Packet { frame: number, size_bytes: payload_bytes.min(size_bytes - at) })
    };
    Ok(frames.iter().enumerate().flat_map(of_frame).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::FrameType;

    fn frames(sizes: &[u64]) -> Vec<Frame> {
        let frame = |(display, &size_bytes)| Frame { display, kind: FrameType::I, size_bytes, time_ms: 0.0 };
        sizes.iter().enumerate().map(frame).collect()
    }

    #[test]
    fn packets_are_full_but_for_the_last_of_each_frame() {
        let packets = packetise(&frames(&[10, 1, 8]), 4).expect("few packets");
        let found: Vec<(usize, u64)> = packets.iter().map(|each| (each.frame, each.size_bytes)).collect();
        assert_eq!(found, [(0, 4), (0, 4), (0, 2), (1, 1), (2, 4), (2, 4)]);
    }

    #[test]
    fn more_packets_than_fit_memory_are_refused_before_they_are_made() {
        let error = packetise(&frames(&[MOST_PACKETS, 1]), 1).expect_err("one too many");
        assert_eq!(error.packets, MOST_PACKETS + 1);
    }
}
