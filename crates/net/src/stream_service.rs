//! Messages, ends of streams, reports about streams, and resets of streams of other stacks (RFC 6525), between the handles and the
//! endpoint.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use anabranch_core::time::Time;
use anabranch_core::{Association, AssociationId, SendError, SendOptions, StreamDirection, StreamsError};
use bytes::Bytes;

use crate::driver::{Driver, fill_inbox};
use crate::mailbox::{Grant, Item};
use crate::shared::{Shared, State};
use crate::stream_state::{InOrder, STREAM_CONTROL_PPID, StreamPeer, StreamTable};

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

    /// Passes messages, ends, reports and resets of streams to the endpoint.
    pub(crate) fn serve_application(&mut self, association: &mut Association, now: Time) {
        while let Some(stream) = self.empty_mailbox(association, now) {
            self.serve_streams(association, now);
            if self.streams.awaits_reset(stream) {
                return;
            }
        }
        self.serve_streams(association, now);
    }

    /// Passes messages and ends of streams to the endpoint. Returns the stream of the next message if its reset must be requested
    /// before: the message belongs to the next use of the stream, and would otherwise end with the earlier one.
    fn empty_mailbox(&mut self, association: &mut Association, now: Time) -> Option<u16> {
        while let Some(item) = self.mailbox.front() {
            let passed = match item {
                Item::Message { message, .. } if self.streams.awaits_reset(message.options.stream) => {
                    return Some(message.options.stream);
                }
                Item::Message { message, grant } => {
                    let (payload, options) = (message.payload.clone(), message.options(Instant::now));
                    match grant {
                        Grant::Room => association.send_beyond(now, payload, options),
                        Grant::Displaces => association.send_at(now, payload, options),
                    }
                }
                &Item::End { stream, end } => end_stream(&mut self.streams, association, now, (stream, end)),
            };
            match passed {
                // The endpoint reports room or keys later. Messages that remain at the end of the association are counted.
                Err(SendError::BufferFull { .. } | SendError::NotProtected | SendError::Closing) => break,
                // A restarted peer may support less than before; `send` then refuses.
                Ok(())
                | Err(
                    SendError::NoSuchStream { .. }
                    | SendError::Empty
                    | SendError::NoPartialReliability
                    | SendError::KeyManagementOnly,
                ) => self.mailbox.pop(),
            }
        }
        None
    }

    /// Grants the room of the send buffer. Returns `true` if tasks whose messages were refused may try again.
    pub(crate) fn grant_room(&mut self, association: &mut Association) -> bool {
        self.rules = association.send_rules();
        let room = association.request_room();
        self.mailbox.grant(room, |stream| association.has_unsent(stream))
    }

    /// Passes reports and resets to the endpoint.
    fn serve_streams(&mut self, association: &mut Association, now: Time) {
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

/// Ends a stream by the means that the peer has. A stream that is given up loses its unsent messages first.
fn end_stream(
    streams: &mut StreamTable,
    association: &mut Association,
    now: Time,
    (stream, end): (u16, InOrder),
) -> Result<(), SendError> {
    // A reset that must wait belongs to an earlier use of the stream.
    if matches!(end, InOrder::Reset { .. }) && !streams.awaits_reset(stream) {
        let end_ppid = (streams.peer() == StreamPeer::Controls).then_some(STREAM_CONTROL_PPID);
        let bytes = association.discard_unsent(stream, end_ppid);
        streams.refund(stream, bytes);
    }
    match streams.peer() {
        StreamPeer::Controls => {
            let options = SendOptions { stream, ppid: STREAM_CONTROL_PPID, ..SendOptions::default() };
            association.send_beyond(now, Bytes::copy_from_slice(&end.encode()), options)
        }
        StreamPeer::Resets => {
            streams.reset_outgoing(stream);
            Ok(())
        }
        StreamPeer::Neither => Ok(()),
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
        if direction == StreamDirection::Outgoing || state.streams.peer() != StreamPeer::Resets {
            return;
        }
        let mut keys = |piece: &_, payload: &[u8], at: &mut _| self.keys.take(now, id, (piece, payload), at);
        // Unread messages precede the reset. The receive buffer bounds them. Only peers with stream control can violate it.
        let _ = fill_inbox(shared, &mut state, association, usize::MAX, &mut keys);
        state.streams.reset_by_peer(streams);
    }
}
