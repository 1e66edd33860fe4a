//! Coded frames: type, size, and time of transmission.

pub use anabranch_scenario::FrameType;

/// A frame of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Index in the display order. Its index in coding order is that in the trace.
    pub display: usize,
    /// Type of the frame.
    pub kind: FrameType,
    /// Coded size in bytes.
    pub size_bytes: u64,
    /// Time of transmission after the first frame, in ms.
    pub time_ms: f64,
}

/// Returns the index of each frame of coding order in the display order. A reference is displayed after the B frames that follow it
/// in coding order.
pub(super) fn display_order(kinds: &[FrameType]) -> Vec<usize> {
    let mut display = vec![0; kinds.len()];
    let (mut held, mut following) = (None, 0);
    for (number, kind) in kinds.iter().enumerate() {
        let shown = if kind.is_reference() { held.replace(number) } else { Some(number) };
        if let Some(shown) = shown {
            display[shown] = following;
            following += 1;
        }
    }
    if let Some(held) = held {
        display[held] = following;
    }
    display
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(letters: &str) -> Vec<FrameType> {
        letters.chars().map(|letter| FrameType::of(&letter.to_string()).expect("a type")).collect()
    }

    #[test]
    fn a_reference_is_displayed_after_the_b_frames_that_follow_it() {
        assert_eq!(display_order(&kinds("IPBBPBBIBB")), [0, 3, 1, 2, 6, 4, 5, 9, 7, 8]);
        assert_eq!(display_order(&kinds("IPP")), [0, 1, 2]);
        assert_eq!(display_order(&[]), [0; 0]);
    }
}
