//! Abandonment of messages with a limit, and its consequences (RFC 3758 section 3.5, RFC 7496 section 3).
//!
//! Limits are checked before each transmission and whenever timers run, so that no expired message is sent or retransmitted. Losses
//! are checked after windows have been cut: a chunk that is abandoned because it was lost has cut its path's window like any other.
//! The end of a lifetime is a deadline of its own, so that an expired message does not block the receiver while its path is silent.
//! Room in the send buffer is made when a message needs it.

use crate::association::{Association, AssociationEvent};
use crate::policy::{Event, OpportunityCause, Reason, Refused};
use crate::send::{AbandonCause, AbandonedChunk, ChunkState, MessageKey, Reliability, SendOptions, Support};
use crate::trace::DecisionRecord;

impl Association {
    /// Returns `true` if the peer supports FORWARD-TSN (RFC 3758), so that messages may be sent with less than full reliability;
    /// `None` until the handshake has ended.
    pub fn supports_partial_reliability(&self) -> Option<bool> {
        match self.sender.support() {
            Support::Unknown => None,
            Support::Yes => Some(true),
            Support::No => Some(false),
        }
    }

    /// Abandons all messages whose limits are exceeded.
    #[inline]
    pub(crate) fn abandon_due(&mut self) {
        if self.sender.is_partially_reliable() && !self.is_closed() {
            self.abandon_all_due();
        }
    }

    // Inlining this makes each poll save more registers, and few polls call it.
    #[inline(never)]
    fn abandon_all_due(&mut self) {
        let mut any = false;
        while let Some(key) = self.sender.take_expired(self.now) {
            any |= self.abandon(key, AbandonCause::Lifetime);
        }
        while let Some((key, cause)) = self.sender.take_exhausted(self.now) {
            any |= self.abandon(key, cause);
        }
        if any {
            self.after_abandonment();
        }
    }

    /// Makes room in the send buffer for a message, if messages of lower priority occupy enough of it.
    pub(crate) fn make_room(&mut self, payload_bytes: u64, reliability: Reliability) {
        if !self.sender.is_partially_reliable() || !self.sender.find_room(payload_bytes, reliability) {
            return;
        }
        let mut any = false;
        while let Some(key) = self.sender.take_candidate() {
            any |= self.abandon(key, AbandonCause::Priority);
        }
        if any {
            self.after_abandonment();
        }
    }

    /// Abandons a message; `false` if it has arrived.
    fn abandon(&mut self, key: MessageKey, cause: AbandonCause) -> bool {
        let Some(withdrawn) = self.update_sender(|sender| sender.withdraw(key)) else { return false };
        let (first, last) = withdrawn.tsns.unwrap_or((1, 0));
        let mut bytes = withdrawn.unsent_bytes;
        for tsn in first..=last {
            if self.sender.belongs_to(tsn, key) {
                bytes += self.abandon_chunk(tsn);
            }
        }
        self.outputs.statistics.abandoned.bytes += bytes;
        self.outputs.statistics.abandoned.count_message(cause, withdrawn.sent);
        self.record(
            DecisionRecord::Abandoned(cause),
            first,
            Reason::rule(cause_text(cause)),
            &Refused::new(),
        );
        let (stream, context) = (withdrawn.options.stream, withdrawn.options.context);
        self.outputs.report(AssociationEvent::Abandoned { stream, context, cause, sent: withdrawn.sent });
        true
    }

    /// Sets the number of streams that the peer accepts. Messages on other streams are abandoned and reported to the application.
    pub(crate) fn take_streams(&mut self, streams: u16) {
        let refused = self.update_sender(|sender| sender.limit_streams(streams));
        let cause = AbandonCause::Streams;
        for message in &refused {
            let SendOptions { stream, context, .. } = message.options;
            self.outputs.statistics.abandoned.bytes += message.bytes;
            self.outputs.statistics.abandoned.count_message(cause, false);
            self.outputs.report(AssociationEvent::Abandoned { stream, context, cause, sent: false });
        }
        if !refused.is_empty() {
            self.consider_writable();
        }
    }

    /// Abandons a chunk and returns its user bytes if it had not arrived, otherwise 0.
    fn abandon_chunk(&mut self, tsn: u64) -> u64 {
        let Some(chunk) = self.update_sender(|sender| sender.abandon_chunk(tsn)) else { return 0 };
        let AbandonedChunk { was, path, bytes, payload_bytes } = chunk;
        self.sender.end_window_probe_of(tsn);
        match was {
            ChunkState::Bound { placed: true } => self.dispatch_event(&Event::Unbound { path, tsn, bytes }),
            ChunkState::InFlight | ChunkState::Lost(_) => {
                self.paths.stop_waiting_for(tsn);
                self.dispatch_event(&Event::Abandoned { path, tsn, bytes });
            }
            ChunkState::Bound { placed: false } => {}
            ChunkState::Acked | ChunkState::NonRenegable | ChunkState::Abandoned => return 0,
        }
        self.outputs.statistics.abandoned.chunks += 1;
        payload_bytes
    }

    fn after_abandonment(&mut self) {
        self.dispatcher().stop_t3_of_empty_paths();
        self.consider_forward_tsn();
        self.open_opportunity(OpportunityCause::Application, true);
        self.consider_writable();
        self.advance_stream_changes();
        self.advance_shutdown();
    }
}

fn cause_text(cause: AbandonCause) -> &'static str {
    match cause {
        AbandonCause::Retransmissions => "lost, and may not be retransmitted again",
        AbandonCause::Lifetime => "its lifetime is over",
        AbandonCause::Priority => "a message that matters more needs its room",
        AbandonCause::Streams => "the peer has no stream with its number",
    }
}
