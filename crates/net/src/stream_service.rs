//! Reports about streams, and resets of streams of other stacks (RFC 6525), between the handles and the endpoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_core::time::Time;
use anabranch_core::{Association, AssociationId, SendOptions, StreamDirection, StreamsError};
use bytes::Bytes;

use crate::driver::{Driver, fill_inbox};
use crate::shared::{Shared, State};
use crate::stream_state::{STREAM_CONTROL_PPID, StreamPeer};

/// Maximum number of bytes in a message of reports about streams, which fits the smallest packets.
const REPORT_BYTES: usize = 440;

impl State {
    /// Passes priorities of streams to the endpoint, before messages.
    pub(crate) fn prioritise_streams(&mut self, association: &mut Association) {
        while let Some((stream, priority)) = self.streams.take_priority() {
            // A peer that restarted may accept fewer streams.
            let _ = association.set_stream_priority(stream, priority);
        }
    }

    /// Passes reports and resets to the endpoint.
    pub(crate) fn serve_streams(&mut self, association: &mut Association, now: Time) {
        let options = SendOptions { ppid: STREAM_CONTROL_PPID, unordered: true, ..SendOptions::default() };
        while self.streams.has_ahead() {
            let reports = self.streams.take_reports(REPORT_BYTES);
            // An association that is closing needs no reports.
            let _ = association.send_urgent(Bytes::from(reports), options);
        }
        if self.streams.has_resets() {
            let [outgoing, incoming] = self.streams.take_resets();
            let mut request = |streams: BTreeSet<u16>, direction| {
                let listed: Vec<u16> = streams.iter().copied().collect();
                let requested = match direction {
                    _ if listed.is_empty() => return streams,
                    StreamDirection::Outgoing => association.reset_streams(now, &listed),
                    StreamDirection::Incoming => association.request_incoming_reset(now, &listed),
                };
                match requested {
                    // The answer to an earlier request leads to another call.
                    Err(StreamsError::InProgress { .. } | StreamsError::TooManyRequests) => streams,
                    Ok(()) | Err(_) => BTreeSet::new(),
                }
            };
            let waiting =
                [request(outgoing, StreamDirection::Outgoing), request(incoming, StreamDirection::Incoming)];
            self.streams.restore_resets(waiting);
        }
    }
}

impl Driver {
    /// Begins the streams of an association that was established, or established again.
    pub(crate) fn begin_streams(&self, id: AssociationId, state: &mut State) {
        let Some(association) = self.endpoint.association(id) else { return };
        let peer = match () {
            // The application has no handles.
            () if !association.announces_stream_control() => StreamPeer::Neither,
            () if association.controls_streams() => StreamPeer::Controls,
            () if association.changes_streams() => StreamPeer::Resets,
            () => StreamPeer::Neither,
        };
        let both = association.inbound_streams().min(association.outbound_streams());
        state.streams.begin(peer, association.opens_even_streams(), both);
    }

    /// Ends the streams that a peer without stream control has reset, after their last messages.
    pub(crate) fn streams_reset(
        &mut self,
        id: AssociationId,
        shared: &Arc<Shared>,
        direction: StreamDirection,
        streams: &[u16],
    ) {
        self.due.insert(id);
        let now = self.clock.now();
        let Some(association) = self.endpoint.association_mut(id) else { return };
        let mut state = shared.lock();
        if direction == StreamDirection::Outgoing || !state.streams.resets_streams() {
            return;
        }
        let mut keys = |piece: &_, payload: &[u8], at: &mut _| self.keys.take(now, id, (piece, payload), at);
        // Unread messages precede the reset. The receive buffer bounds them. Only peers with stream control can violate it.
        let _ = fill_inbox(shared, &mut state, association, usize::MAX, &mut keys);
        state.streams.reset_by_peer(streams);
    }
}
