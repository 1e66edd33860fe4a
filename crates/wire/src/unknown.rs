//! What to do with a type that the receiver does not know (RFC 9260 sections 3.2 and 3.2.1).
//!
//! The two highest bits of a chunk type or parameter type say it, so that types invented later still get the
//! treatment their inventors wanted:
//!
//! ```text
//!   bits   go on with the rest   report it
//!   00     no                    no
//!   01     no                    yes
//!   10     yes                   no
//!   11     yes                   yes
//! ```

/// What the highest two bits of an unknown chunk or parameter type ask for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnknownAction {
    /// Process nothing further of the packet (chunk type) or the chunk (parameter type).
    StopDiscard,
    /// As `StopDiscard`, and report the type to the sender.
    StopDiscardReport,
    /// Pass over it and go on.
    Skip,
    /// Pass over it, go on, and report the type to the sender.
    SkipReport,
}

impl UnknownAction {
    /// The action that the highest two bits of `high` (the type, or its first byte) ask for.
    pub(crate) const fn of(high: u8) -> Self {
        match high >> 6 {
            0b00 => Self::StopDiscard,
            0b01 => Self::StopDiscardReport,
            0b10 => Self::Skip,
            _ => Self::SkipReport,
        }
    }

    /// Whether what follows in the same packet or chunk is not to be processed.
    pub const fn stops(self) -> bool {
        matches!(self, Self::StopDiscard | Self::StopDiscardReport)
    }

    /// Whether it is reported to the sender: with an Unrecognized Chunk Type cause, or an Unrecognized Parameter.
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
