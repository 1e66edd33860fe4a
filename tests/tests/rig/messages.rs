//! Messages to send, and the check that the received ones are equal.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Payload protocol identifier, which every peer preserves: ordered messages are "strings" to WebRTC, unordered ones "binary".
/// Peers that map the numbers to their own types keep them apart.
pub(crate) const ORDERED: u32 = 51;
pub(crate) const UNORDERED: u32 = 53;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) stream: u16,
    pub(crate) unordered: bool,
    pub(crate) payload: Bytes,
}

impl Message {
    pub(crate) fn ppid(&self) -> u32 {
        if self.unordered { UNORDERED } else { ORDERED }
    }
}

/// Sizes that fill chunks exactly, miss that by one, need many chunks, and share packets.
const SIZES: [usize; 12] = [1, 2, 5, 100, 1159, 1160, 1163, 1452, 1453, 4000, 17_001, 60_000];

/// Returns at least `total` bytes in messages of mixed sizes over these streams; every third message is unordered.
pub(crate) fn mixed(seed: u64, total: usize, streams: u16) -> Vec<Message> {
    let mut state = seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut all, mut sum) = (Vec::new(), 0);
    while sum < total {
        let size = SIZES[next() as usize % SIZES.len()];
        let payload: Bytes = (0..size).map(|_| next() as u8).collect::<Vec<u8>>().into();
        let stream = (next() % u64::from(streams)) as u16;
        all.push(Message { stream, unordered: all.len() % 3 == 2, payload });
        sum += size;
    }
    all
}

/// Received messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) messages: Vec<Message>,
    pub(crate) bytes: usize,
}

impl Inbox {
    pub(crate) fn take(&mut self, stream: u16, ppid: u32, payload: impl Into<Bytes>) {
        let payload = payload.into();
        self.bytes += payload.len();
        self.messages.push(Message { stream, unordered: ppid == UNORDERED, payload });
    }

    /// Panics unless exactly `sent` has arrived, ordered messages in the order of their streams.
    pub(crate) fn assert_is(&self, sent: &[Message], who: &str) {
        assert_eq!(self.messages.len(), sent.len(), "{who}: number of messages");
        let (got, expected) = (sorted(&self.messages), sorted(sent));
        for (key, messages) in &expected {
            assert!(got.get(key) == Some(messages), "{who}: stream {}, unordered {}: differs", key.0, key.1);
        }
        assert_eq!(got.len(), expected.len(), "{who}: streams");
    }
}

/// Returns messages by stream and kind. Unordered messages are sorted, since their order of arrival is arbitrary.
fn sorted(messages: &[Message]) -> BTreeMap<(u16, bool), Vec<&Bytes>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for message in messages {
        all.entry((message.stream, message.unordered)).or_default().push(&message.payload);
    }
    for ((_, unordered), list) in &mut all {
        if *unordered {
            list.sort_unstable();
        }
    }
    all
}
