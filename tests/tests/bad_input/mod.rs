//! Packets that no endpoint should send: each is counted and dropped, or answered as the standard says, and has no other effect.

mod corpus;
mod mutation;
mod parameters;
mod sacks;

use anabranch_core::time::Span;
use anabranch_core::{Association, SendOptions};
use bytes::Bytes;

use crate::rig::craft::{DATA, SACK};
use crate::rig::wires::{Packet, Wires};

/// Two endpoints in the middle of a transfer from the first to the second. A chunk is missing, so the receiver holds data that it
/// cannot deliver, and the sender has received no acknowledgement.
struct Scene {
    wires: Wires,
    /// Tags that the two nodes expect.
    tags: [u32; 2],
    sent: Vec<Vec<u8>>,
}

/// Messages in flight in a scene.
const MESSAGES: usize = 3;

impl Scene {
    fn new() -> Self {
        let mut wires = Wires::connected(1);
        let tag = |of: usize| {
            let to = wires.nodes[of].addresses[0];
            wires.log.iter().rfind(|p| p.to == to).expect("packets were sent").tag()
        };
        let tags = [tag(0), tag(1)];
        let mut data = 0;
        wires.loses = Box::new(move |p| {
            data += u32::from(p.kind() == DATA);
            p.kind() == SACK || (p.kind() == DATA && data == 1)
        });
        let mut scene = Scene { wires, tags, sent: Vec::new() };
        for n in 0..MESSAGES {
            scene.send(vec![n as u8; 1452]);
        }
        scene.wires.run(Span::from_millis(500));
        scene
    }

    fn send(&mut self, message: Vec<u8>) {
        let bytes = Bytes::from(message.clone());
        self.wires.nodes[0].only_mut().send(bytes, SendOptions::default()).expect("it is up");
        self.wires.drain();
        self.sent.push(message);
    }

    /// Returns the association of a node in its debug format, without counters.
    fn state(&mut self, node: usize) -> String {
        // The time of its last use is no part of the state.
        self.wires.drain();
        without_statistics(self.wires.nodes[node].only_mut())
    }

    /// Passes a packet from the other node to this one.
    fn inject(&mut self, to: usize, bytes: &[u8]) -> anabranch_core::Handled {
        let from = self.wires.nodes[1 - to].addresses[0];
        let local = self.wires.nodes[to].addresses[0];
        self.wires.inject(to, from, local, bytes)
    }

    /// Returns the highest TSN that the first node has sent, and its cumulative acknowledgement.
    fn tsns(&self) -> (u32, u32) {
        let cumulative = self.wires.nodes[0].only().association_facts().cumulative_tsn as u32;
        (cumulative.wrapping_add(MESSAGES as u32), cumulative)
    }

    /// Completes the transfer, with further data, and checks that nothing is missing.
    fn completes(mut self, what: &str) {
        self.wires.loses = Box::new(|_| false);
        self.send(b"more".to_vec());
        self.wires.run(Span::from_secs(30));
        let association = self.wires.nodes[1].only_mut();
        let (mut got, mut bytes) = (Vec::new(), Vec::new());
        while association.recv(&mut bytes).is_some() {
            got.push(std::mem::take(&mut bytes));
        }
        assert!(got == self.sent, "{what}: {} messages, not {}", got.len(), self.sent.len());
        self.wires.run(Span::from_secs(1));
        assert_eq!(self.wires.nodes[0].only().buffered_bytes(), 0, "{what}");
    }
}

/// Returns an association in its debug format without counters and the time of the last packet, which every packet with the right
/// tag changes.
fn without_statistics(association: &Association) -> String {
    let state = without(&format!("{association:?}"), "statistics: Statistics {", '}');
    without(&without(&state, "silent_since: ", ','), "received_bytes: ", ',')
}

/// Returns a rendered state without its flat parts of a name, each from the name to its end.
fn without(state: &str, part: &str, last: char) -> String {
    let mut pieces = state.split(part);
    let first = pieces.next().unwrap_or_default().to_owned();
    let rest: Vec<&str> = pieces.map(|piece| &piece[piece.find(last).expect("it ends")..]).collect();
    assert!(!rest.is_empty(), "it has this part");
    first + &rest.concat()
}

/// Panics with the first difference between two states.
fn assert_same(before: &str, after: &str, what: &str) {
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let around = |text: &str| text[same.saturating_sub(200)..(same + 100).min(text.len())].to_owned();
    assert!(before == after, "{what}:\n   {}\nis {}", around(before), around(after));
}

/// Returns the types of all chunks in these packets.
fn kinds(packets: &[Packet]) -> Vec<u8> {
    packets.iter().flat_map(Packet::kinds).collect()
}
