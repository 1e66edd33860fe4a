//! Association setup, and packets that must not disturb it (RFC 9260 sections 5, 8.4 and 8.5).

mod blue;
mod collision;
mod cookies;
mod losses;
mod packets;
mod refusals;
mod restart;
mod tags;
mod undelivered;
mod unknown;
mod zero_checksum;

use anabranch_core::SendOptions;
use anabranch_core::time::Span;
use bytes::Bytes;

use crate::rig::wires::{Node, Wires};

/// Sends a message in each direction, and checks that both arrive.
fn data_flows(wires: &mut Wires) {
    for (index, text) in ["one way", "and the other"].iter().enumerate() {
        let message = Bytes::copy_from_slice(text.as_bytes());
        let sent = wires.nodes[index].only_mut().send(message, SendOptions::default());
        assert_eq!(sent, Ok(()));
    }
    wires.run(Span::from_secs(5));
    for (index, text) in ["and the other", "one way"].iter().enumerate() {
        assert_eq!(read(&mut wires.nodes[index]), [text.as_bytes()]);
    }
}

/// Returns all messages that can be read.
fn read(node: &mut Node) -> Vec<Vec<u8>> {
    let association = node.only_mut();
    let mut messages = Vec::new();
    let mut bytes = Vec::new();
    while association.recv(&mut bytes).is_some() {
        messages.push(std::mem::take(&mut bytes));
    }
    messages
}

/// Returns the tags that the two nodes of a pair expect, from the sent packets.
fn tags(wires: &Wires) -> [u32; 2] {
    let tag = |of: usize| {
        let to = wires.nodes[of].addresses[0];
        let packet = wires.log.iter().rfind(|p| p.to == to && p.tag() != 0);
        packet.expect("somebody sent it a packet").tag()
    };
    [tag(0), tag(1)]
}
