//! Packets that nobody should send: each is counted and dropped, or answered as the standard says, and nothing else
//! comes of it.

mod corpus;
mod mutation;
mod parameters;
#[path = "../rig/mod.rs"]
mod rig;
mod sacks;

use anabranch_core::time::Span;
use anabranch_core::{Association, SendOptions};
use bytes::Bytes;

use rig::craft::{DATA, SACK};
use rig::wires::{Packet, Wires};

/// Two endpoints in the middle of a transfer from the first to the second: a chunk is missing, so that the receiver
/// holds data that it cannot hand out, and the sender knows of none of what has arrived.
struct Scene {
    wires: Wires,
    /// The tags that the two expect.
    tags: [u32; 2],
    sent: Vec<Vec<u8>>,
}

/// The messages on their way in a scene.
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

    /// The association of either node, rendered with everything in it but counters.
    fn state(&mut self, node: usize) -> String {
        // Its clock stands where it was last used; that is no part of the state.
        self.wires.drain();
        without_statistics(self.wires.nodes[node].only_mut())
    }

    /// Gives one node a packet as if the other had sent it.
    fn inject(&mut self, to: usize, bytes: &[u8]) -> anabranch_core::Handled {
        let from = self.wires.nodes[1 - to].addresses[0];
        let local = self.wires.nodes[to].addresses[0];
        self.wires.inject(to, from, local, bytes)
    }

    /// The highest TSN that the first node has sent, and the one that all before it have been acknowledged up to.
    fn tsns(&self) -> (u32, u32) {
        let cumulative = self.wires.nodes[0].only().association_facts().cumulative_tsn as u32;
        (cumulative.wrapping_add(MESSAGES as u32), cumulative)
    }

    /// The transfer goes on as if nothing had happened, and more data besides.
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

/// Everything in an association but its counters, and when it heard from its peer last: whatever has the right tag is heard.
fn without_statistics(association: &Association) -> String {
    let state = without(&format!("{association:?}"), "statistics: Statistics {", '}');
    without(&state, "silent_since: ", ',')
}

/// A rendered state without one of its flat parts, from its name to its end.
fn without(state: &str, part: &str, last: char) -> String {
    let start = state.find(part).expect("it has this part");
    let end = start + state[start..].find(last).expect("it ends");
    format!("{}{}", &state[..start], &state[end..])
}

/// Panics with the first place where two states differ.
fn assert_same(before: &str, after: &str, what: &str) {
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let around = |text: &str| text[same.saturating_sub(200)..(same + 100).min(text.len())].to_owned();
    assert!(before == after, "{what}:\n   {}\nis {}", around(before), around(after));
}

/// The types of all chunks in these packets.
fn kinds(packets: &[Packet]) -> Vec<u8> {
    packets.iter().flat_map(Packet::kinds).collect()
}
