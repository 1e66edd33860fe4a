//! Facts of the association that policies see: the queue, the peer's window, and the head-of-line chunk.

use crate::path_id::PathId;
use crate::policy::AssociationFacts;
use crate::send::Sender;

impl Sender {
    /// Returns the facts of the association, as of the latest transition or refresh.
    #[inline]
    pub(crate) fn facts(&self) -> &AssociationFacts {
        &self.facts
    }

    /// Updates the facts of the peer's window and of the buffer.
    #[inline]
    pub(crate) fn publish_window(&mut self) {
        self.facts.peer_window = self.window.available();
        self.facts.peer_window_advertised = self.window.advertised();
        self.facts.peer_window_initial = self.window.initial();
        self.facts.send_buffer_limit = self.buffer_limit();
    }

    /// Updates the facts that are computed from the queue and the outstanding chunks, before a policy is called.
    pub(crate) fn refresh_facts(&mut self) {
        self.facts.queued_bytes = self.queue.bytes();
        self.facts.send_buffer_free = self.buffer_free();
        self.facts.cumulative_tsn = self.outstanding.cumulative();
        let head = self.outstanding.head_version();
        if self.published_head != head {
            self.published_head = head;
            self.facts.head_of_line = self.head_of_line();
        }
    }

    /// Records the path of the latest new data.
    #[inline]
    pub(crate) fn note_new_data_path(&mut self, path: PathId) {
        self.facts.last_new_data_path = Some(path);
    }

    /// Records that the peer uses the flags of SACKs for another purpose than CMT.
    #[inline]
    pub(crate) fn set_foreign_sack_flags(&mut self, foreign: bool) {
        self.facts.foreign_sack_flags = foreign;
    }
}
