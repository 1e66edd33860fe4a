//! Effects of changes of streams on the sender (RFC 6525).

use crate::send::Sender;
use crate::send::held::Held;
use crate::stream_set::StreamSet;

/// Changes of streams.
impl Sender {
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
