//! Messages on streams under reset, which wait for the answer of the peer: until then it is open which stream sequence numbers they
//! get (RFC 6525 section 5.1.2).

use std::collections::VecDeque;

use bytes::Bytes;

use crate::send::options::SendOptions;
use crate::stream_set::StreamSet;
use crate::time::Time;

/// Message on a stream under reset.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) payload: Bytes,
    pub(super) options: SendOptions,
    /// Time of the call that sent it, from which its lifetime counts.
    pub(super) sent_at: Time,
}

/// Streams under reset, and the messages that were sent on them since.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldMessages {
    /// Streams of each reset whose answer is awaited. No stream is in two of them.
    resets: Vec<StreamSet>,
    messages: VecDeque<Held>,
    bytes: u64,
}

impl HeldMessages {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the user bytes of all messages.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the same, recounted.
    pub(super) fn recounted_bytes(&self) -> u64 {
        self.messages.iter().map(|held| held.payload.len() as u64).sum()
    }

    /// Returns `true` if the stream is under reset.
    #[inline]
    pub(crate) fn contains(&self, stream: u16) -> bool {
        !self.resets.is_empty() && self.resets.iter().any(|streams| streams.contains(stream))
    }

    /// Returns a stream of the set that is under reset.
    pub(crate) fn first_of(&self, streams: &StreamSet) -> Option<u16> {
        self.resets.iter().find_map(|reset| reset.first_shared(streams))
    }

    /// Puts streams under reset. None of them may be under reset already.
    pub(super) fn begin(&mut self, streams: StreamSet) {
        debug_assert!(self.first_of(&streams).is_none(), "{streams:?} are under reset");
        self.resets.push(streams);
    }

    pub(super) fn push(&mut self, held: Held) {
        self.bytes += held.payload.len() as u64;
        self.messages.push_back(held);
    }

    /// Discards the messages of a stream after the last one with `end_ppid`. Returns their bytes, and `true` if messages of the stream
    /// precede them: those sent before the reset, or one with `end_ppid`.
    pub(super) fn discard(&mut self, stream: u16, end_ppid: Option<u32>) -> (u64, bool) {
        let is_end = |held: &Held| held.options.stream == stream && Some(held.options.ppid) == end_ppid;
        let kept = self.messages.iter().rposition(is_end).map_or(0, |end| end + 1);
        let (mut index, before) = (0, self.bytes);
        let bytes = &mut self.bytes;
        self.messages.retain(|held| {
            let keep = index < kept || held.options.stream != stream;
            index += 1;
            *bytes -= if keep { 0 } else { held.payload.len() as u64 };
            keep
        });
        (before - self.bytes, self.contains(stream))
    }

    /// Ends the reset of these streams, and returns their messages in the order of sending.
    pub(super) fn end(&mut self, streams: &StreamSet) -> VecDeque<Held> {
        self.resets.retain(|reset| reset != streams);
        let (released, held) = std::mem::take(&mut self.messages)
            .into_iter()
            .partition::<VecDeque<Held>, _>(|held| !self.contains(held.options.stream));
        self.messages = held;
        self.bytes -= released.iter().map(|held| held.payload.len() as u64).sum::<u64>();
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(stream: u16, payload: &'static [u8]) -> Held {
        let options = SendOptions { stream, ..SendOptions::default() };
        Held { payload: Bytes::from_static(payload), options, sent_at: Time::ZERO }
    }

    #[test]
    fn end_of_a_reset_releases_its_messages_in_order_and_keeps_others() {
        let mut messages = HeldMessages::default();
        messages.begin(StreamSet::of([1, 3]));
        messages.begin(StreamSet::of([2]));
        for (stream, payload) in [(1, &b"a"[..]), (2, b"bb"), (3, b"ccc"), (1, b"d")] {
            assert!(messages.contains(stream));
            messages.push(held(stream, payload));
        }
        assert_eq!((messages.bytes(), messages.first_of(&StreamSet::of([0, 2]))), (7, Some(2)));
        let released = messages.end(&StreamSet::of([1, 3]));
        let payloads: Vec<_> = released.iter().map(|held| &held.payload[..]).collect();
        assert_eq!(payloads, [&b"a"[..], b"ccc", b"d"]);
        assert_eq!((messages.bytes(), messages.recounted_bytes()), (2, 2));
        assert!(!messages.contains(1) && messages.contains(2) && !messages.is_empty());
    }

    #[test]
    fn discarded_are_the_messages_of_one_stream_after_its_end() {
        let mut messages = HeldMessages::default();
        messages.begin(StreamSet::of([1, 2]));
        for (stream, ppid) in [(1, 0), (1, 9), (2, 0), (1, 0)] {
            let options = SendOptions { stream, ppid, ..SendOptions::default() };
            messages.push(Held { payload: Bytes::from_static(b"ab"), options, sent_at: Time::ZERO });
        }
        assert_eq!(messages.discard(1, Some(9)), (2, true));
        assert_eq!((messages.bytes(), messages.recounted_bytes()), (6, 6));
        assert_eq!(messages.discard(1, None), (4, true));
        assert_eq!(messages.discard(3, None), (0, false));
        assert_eq!(messages.bytes(), 2);
    }
}
