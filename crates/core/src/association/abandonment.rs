//! Abandonment of messages with a limit, and its consequences (RFC 3758 section 3.5, RFC 7496 section 3).
//!
//! Limits are checked behind each packet and whenever timers run. Where another call exceeds one, DATA waits until the timers run,
//! which are due at once: no expired message is sent or retransmitted. Losses are checked after windows have been cut: a chunk that
//! is abandoned because it was lost has cut its path's window like any other. The end of a lifetime is a deadline of its own, so
//! that an expired message does not block the receiver while its path is silent.
//! Room in the send buffer is made when a message needs it.

use bytes::Bytes;

use crate::association::{Association, AssociationEvent};
use crate::policy::{Event, OpportunityCause, Reason, Refused};
use crate::send::{AbandonCause, AbandonedChunk, ChunkState, MessageKey, SendOptions, Sender, Support};
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
        if self.owes_abandonment() && !self.is_closed() {
            self.abandon_all_due();
        }
    }

    /// Returns `true` if a limit may be exceeded, so that [`abandon_due`](Self::abandon_due) has to run before DATA is sent.
    #[inline]
    pub(crate) fn owes_abandonment(&self) -> bool {
        self.sender.next_abandonment(self.now).is_some_and(|at| at <= self.now)
    }

    // Inlining this makes each packet save more registers, and few packets call it.
    #[inline(never)]
    fn abandon_all_due(&mut self) {
        let now = self.now;
        self.abandon_all(|sender| sender.take_due_message(now));
    }

    /// Abandons messages of lower priority if a message has no room otherwise and they occupy enough of it.
    pub(crate) fn consider_room(&mut self, payload: &Bytes, options: SendOptions) {
        let bytes = payload.len() as u64;
        if !self.sender.has_room(bytes) && self.sender.find_room(bytes, options.reliability) {
            self.abandon_all(|sender| sender.take_candidate().map(|key| (key, AbandonCause::Priority)));
        }
    }

    /// Abandons the messages that `take` returns, until it returns none, and applies the consequences.
    fn abandon_all(&mut self, mut take: impl FnMut(&mut Sender) -> Option<(MessageKey, AbandonCause)>) {
        let mut any = false;
        while let Some((key, cause)) = take(&mut self.sender) {
            any |= self.abandon(key, cause);
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
