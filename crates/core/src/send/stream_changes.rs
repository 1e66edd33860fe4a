//! Effects on the sender of changes of streams (RFC 6525), of their priorities, and of the negotiated form of chunks.

use std::num::NonZeroU16;

use crate::send::held::Held;
use crate::send::{DataForm, Sender};
use crate::stream_set::StreamSet;

/// Changes of streams.
impl Sender {
    /// Selects I-DATA or DATA for the messages of this association.
    pub(crate) fn interleave(&mut self, interleaves: bool) {
        self.queue.set_form(if interleaves { DataForm::IData } else { DataForm::Data });
    }

    /// Sets the priority of a stream for the schedulers that distinguish streams.
    pub(crate) fn set_stream_priority(&mut self, stream: u16, priority: NonZeroU16) {
        self.queue.set_priority(stream, priority);
    }

    /// Holds later messages on these streams back, of which none may be under reset.
    pub(crate) fn hold(&mut self, streams: StreamSet) {
        self.held.begin(streams);
    }

    /// Queues the messages that were held back for a reset of these streams. Lifetimes that have ended abandon them next.
    pub(crate) fn release(&mut self, streams: &StreamSet) {
        for Held { payload, options, sent_at } in self.held.end(streams) {
            self.enqueue(payload, options, sent_at);
        }
    }

    /// See `SendQueue::reset_ssns`.
    pub(crate) fn reset_ssns(&mut self, streams: &StreamSet) {
        self.queue.reset_ssns(streams);
    }

    /// See `SendQueue::add_streams`.
    pub(crate) fn add_streams(&mut self, streams: u16) {
        self.queue.add_streams(streams);
    }
}
