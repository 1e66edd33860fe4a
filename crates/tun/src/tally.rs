//! Counters of packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a process that carries packets. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: Arc<[AtomicU64; Count::ALL.len()]>,
}

/// Counted quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Packets sent to the peer.
    Sent,
    /// Bytes of these packets.
    SentBytes,
    /// Packets received from the peer and written to the device.
    Received,
    /// Bytes of these packets.
    ReceivedBytes,
    /// Packets dropped by the queue towards the peer.
    Queue,
    /// Packets that are malformed.
    Malformed,
    /// Packets of the peer whose address is not that of the tunnel.
    Spoofed,
    /// Packets from or to targets that the policy does not permit.
    Forbidden,
    /// Packets that the device did not accept.
    Device,
    /// Packets that arrived after their successors were delivered.
    Late,
}

impl Count {
    /// All counted quantities.
    pub const ALL: [Count; 10] = [
        Count::Sent,
        Count::SentBytes,
        Count::Received,
        Count::ReceivedBytes,
        Count::Queue,
        Count::Malformed,
        Count::Spoofed,
        Count::Forbidden,
        Count::Device,
        Count::Late,
    ];

    /// Reasons for which a packet was dropped.
    pub const DROPPED: [Count; 5] =
        [Count::Queue, Count::Malformed, Count::Spoofed, Count::Forbidden, Count::Device];

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Count::Sent => "sent",
            Count::SentBytes => "sent_bytes",
            Count::Received => "received",
            Count::ReceivedBytes => "received_bytes",
            Count::Queue => "dropped_queue",
            Count::Malformed => "dropped_malformed",
            Count::Spoofed => "dropped_spoofed",
            Count::Forbidden => "dropped_forbidden",
            Count::Device => "dropped_device",
            Count::Late => "late",
        }
    }
}

impl Tally {
    /// Returns the value of a counter.
    pub fn get(&self, count: Count) -> u64 {
        self.counts[count as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, count: Count, number: u64) {
        self.counts[count as usize].fetch_add(number, Ordering::Relaxed);
    }
}
