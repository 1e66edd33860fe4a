//! Actions for chunk and parameter types that the receiver does not know (RFC 9260 sections 3.2 and 3.2.1).
//!
//! The two highest bits of a chunk type or parameter type select the action, so that the designers of new types can choose it:
//!
//! ```text
//!   bits   go on with the rest   report it
//!   00     no                    no
//!   01     no                    yes
//!   10     yes                   no
//!   11     yes                   yes
//! ```

/// Action that the highest two bits of an unknown chunk or parameter type select.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnknownAction {
    /// Ignore the rest of the packet (chunk type) or of the chunk (parameter type).
    StopDiscard,
    /// Like `StopDiscard`, and report the type to the sender.
    StopDiscardReport,
    /// Skip it and continue.
    Skip,
    /// Skip it, continue, and report the type to the sender.
    SkipReport,
}

impl UnknownAction {
    /// Returns the action that the highest two bits of `high` (the type, or its first byte) select.
    pub(crate) const fn of(high: u8) -> Self {
        match high >> 6 {
            0b00 => Self::StopDiscard,
            0b01 => Self::StopDiscardReport,
            0b10 => Self::Skip,
            _ => Self::SkipReport,
        }
    }

    /// Returns `true` if the receiver ignores the rest of the packet or chunk.
    pub const fn stops(self) -> bool {
        matches!(self, Self::StopDiscard | Self::StopDiscardReport)
    }

    /// Returns `true` if the receiver reports the type to the sender, with an Unrecognized Chunk Type cause or an
    /// Unrecognized Parameter.
    pub const fn reports(self) -> bool {
        matches!(self, Self::StopDiscardReport | Self::SkipReport)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChunkType, ParamType};

    #[test]
    fn the_two_highest_bits_decide() {
        for (bits, action, stops, reports) in [
            (0b00_u8, UnknownAction::StopDiscard, true, false),
            (0b01, UnknownAction::StopDiscardReport, true, true),
            (0b10, UnknownAction::Skip, false, false),
            (0b11, UnknownAction::SkipReport, false, true),
        ] {
            for low in [0_u8, 1, 0x3F] {
                assert_eq!(ChunkType(bits << 6 | low).unknown_action(), action);
                assert_eq!(ParamType(u16::from(bits) << 14 | u16::from(low)).unknown_action(), action);
            }
            assert_eq!((action.stops(), action.reports()), (stops, reports));
        }
    }
}
