//! Resets of streams that wait for the association.

use std::collections::BTreeSet;

use anabranch_core::time::Time;
use anabranch_core::{Association, StreamsError};

use crate::channel::ChannelId;

/// Outgoing directions to reset.
#[derive(Debug, Default)]
pub(crate) struct Resets(BTreeSet<ChannelId>);

/// Result of a request for the reset of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requested {
    Yes,
    /// The direction cannot be reset: its end cannot be signalled.
    Impossible,
}

impl Resets {
    pub(crate) fn add(&mut self, id: ChannelId) {
        self.0.insert(id);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Requests resets, and keeps those for which the association has no room yet, or of which an earlier one is in progress.
    pub(crate) fn request(
        &mut self,
        now: Time,
        association: &mut Association,
    ) -> Vec<(ChannelId, Requested)> {
        let mut requested = Vec::new();
        self.0.retain(|&id| match association.reset_streams(now, &[id]) {
            Err(
                StreamsError::NotEstablished
                | StreamsError::TooManyRequests
                | StreamsError::InProgress { .. },
            ) => true,
            result => {
                let outcome = if result.is_ok() { Requested::Yes } else { Requested::Impossible };
                requested.push((id, outcome));
                false
            }
        });
        requested
    }
}
