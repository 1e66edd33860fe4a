//! Reassembly in the form that the association has negotiated: from DATA chunks or from I-DATA chunks.

use anabranch_wire::{Mid, Ssn, StreamId};

use crate::contents::Contents;
use crate::intervals::Interval;
use crate::recv::interleaved::Interleaved;
use crate::recv::reassembly::{Fragment, Reassembly, ReceivedMessage, Violation};
use crate::stream_set::StreamSet;

/// Message that a FORWARD-TSN or I-FORWARD-TSN names as the last one that a stream skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkippedTo {
    Ssn(StreamId, Ssn),
    Mid { stream: StreamId, unordered: bool, mid: Mid },
}

impl SkippedTo {
    pub(crate) fn stream(self) -> u16 {
        match self {
            SkippedTo::Ssn(stream, _) | SkippedTo::Mid { stream, .. } => stream.get(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Assembly {
    Consecutive(Reassembly),
    Interleaved(Interleaved),
}

/// Calls a method that both forms have.
macro_rules! both {
    ($assembly:expr, $form:ident => $call:expr) => {
        match $assembly {
            Assembly::Consecutive($form) => $call,
            Assembly::Interleaved($form) => $call,
        }
    };
}

impl Assembly {
    pub(super) fn with_contents(self, contents: Contents) -> Self {
        match self {
            Assembly::Consecutive(form) => Assembly::Consecutive(form.with_contents(contents)),
            Assembly::Interleaved(form) => Assembly::Interleaved(form.with_contents(contents)),
        }
    }

    pub(super) fn has_message(&self) -> bool {
        both!(self, form => form.has_message())
    }

    pub(super) fn held_payload_bytes(&self) -> u64 {
        both!(self, form => form.held_payload_bytes())
    }

    pub(super) fn held_chunks(&self) -> u64 {
        both!(self, form => form.held_chunks())
    }

    pub(super) fn readable_bytes(&self) -> u64 {
        both!(self, form => form.readable_bytes())
    }

    pub(super) fn streams(&self) -> u16 {
        both!(self, form => form.streams())
    }

    pub(super) fn set_stream_count(&mut self, streams: u16) {
        both!(self, form => form.set_stream_count(streams));
    }

    pub(super) fn reset(&mut self, streams: &StreamSet) -> bool {
        both!(self, form => form.reset(streams))
    }

    pub(super) fn next_ssn(&self, stream: u16) -> u16 {
        both!(self, form => form.next_ssn(stream))
    }

    pub(super) fn is_blocked_without_gap(&self) -> bool {
        both!(self, form => form.is_blocked_without_gap())
    }

    /// Returns `true` unless the fragment's number in its stream contradicts the missing TSNs. `reach` is the number of TSNs from the
    /// first missing one to its own.
    pub(super) fn awaits_sequence(&mut self, fragment: &Fragment<'_>, reach: u64) -> bool {
        match (self, fragment.place) {
            (Assembly::Consecutive(form), _) => form.awaits_sequence(fragment),
            (Assembly::Interleaved(form), Some(place)) => form.awaits(fragment, place, reach),
            (Assembly::Interleaved(_), None) => false,
        }
    }

    pub(super) fn push(&mut self, fragment: Fragment<'_>, reach: u64) -> Result<(), Violation> {
        match (self, fragment.place) {
            (Assembly::Consecutive(form), None) => form.push(fragment),
            (Assembly::Interleaved(form), Some(place)) => form.push(fragment, place, reach),
            _ => Err(Violation::WrongForm),
        }
    }

    /// Records the TSN of a fragment that is not stored.
    pub(super) fn ignore(&mut self, fragment: &Fragment<'_>) {
        if let Assembly::Consecutive(form) = self {
            form.ignore(fragment);
        }
    }

    /// Passes the next piece to `out`, and the TSNs of its fragments to `read`.
    pub(super) fn take(
        &mut self,
        mut out: impl FnMut(&[u8], usize),
        mut read: impl FnMut(Interval),
        allow_partial: bool,
    ) -> Option<ReceivedMessage> {
        match self {
            Assembly::Consecutive(form) => {
                let (piece, tsns) = form.take(out, allow_partial)?;
                read(tsns);
                Some(piece)
            }
            Assembly::Interleaved(form) => form.take(
                |tsn, part, rest| {
                    read((tsn, tsn));
                    out(part, rest);
                },
                allow_partial,
            ),
        }
    }

    pub(super) fn forward(&mut self, new_cumulative: u64) {
        if let Assembly::Consecutive(form) = self {
            form.forward(new_cumulative);
        }
    }

    pub(super) fn skip(&mut self, skipped: SkippedTo) {
        match (self, skipped) {
            (Assembly::Consecutive(form), SkippedTo::Ssn(stream, ssn)) => {
                form.skip_ordered(stream.get(), ssn.get());
            }
            (Assembly::Interleaved(form), SkippedTo::Mid { stream, unordered, mid }) => {
                form.skip(stream.get(), unordered, mid);
            }
            _ => {}
        }
    }
}
