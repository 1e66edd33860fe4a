//! Endpoints that use ASCONF, and packets authenticated with their keys, which are computed here independently.

use std::net::IpAddr;

use anabranch_core::time::Span;
use anabranch_core::{Association, PathState};
use anabranch_tests::duo::{Duo, PORT, Setup};
use anabranch_tests::hostile::craft;
use anabranch_tests::network::{Packet, Side};
use anabranch_wire::{
    AuthRepr, Cause, CauseCode, Chunk, InitView, NoSpace, PacketView, PacketWriter, Param, ParamType,
    RawCauses,
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Returns a setup in which both sides use ASCONF under scheme `cmt`.
pub(crate) fn setup(pairs: usize) -> Setup {
    Setup::new(pairs, "cmt", "rfc9260").with(|config| config.address_changes.asconf = true)
}

/// Returns a connected pair that keeps every packet.
pub(crate) fn connected(setup: Setup) -> Duo {
    let mut duo = Duo::new(setup);
    duo.kept = Some(Vec::new());
    duo.connect();
    let up = |duo: &Duo| duo.nodes.iter().all(|n| n.try_association().is_some_and(|a| a.is_established()));
    assert!(duo.run_until(Span::from_secs(60), up), "the handshake takes too long");
    duo.run(Span::from_secs(1));
    duo
}

/// Returns an address that is in no pair.
pub(crate) fn extra(side: Side, number: u8) -> IpAddr {
    IpAddr::from([10, 100, number, side.index() as u8 + 1])
}

pub(crate) fn association(duo: &mut Duo, side: Side) -> &mut Association {
    duo.nodes[side.index()].try_association_mut().expect("there is an association")
}

pub(crate) fn add(duo: &mut Duo, side: Side, local: IpAddr) {
    let now = duo.now;
    association(duo, side).add_local_address(now, local).expect("there is room");
    duo.settle();
}

pub(crate) fn remove(duo: &mut Duo, side: Side, local: IpAddr) {
    let now = duo.now;
    association(duo, side).remove_local_address(now, local).expect("a path begins there");
    duo.settle();
}

/// Returns the local and remote addresses of the active paths, in order.
pub(crate) fn active(duo: &Duo, side: Side) -> Vec<(IpAddr, IpAddr)> {
    let association = duo.nodes[side.index()].association();
    let in_use = association.paths().iter().filter(|facts| facts.state == PathState::Active);
    let mut pairs: Vec<_> = in_use
        .filter_map(|facts| association.path_address(facts.id))
        .map(|path| (path.local, path.remote))
        .collect();
    pairs.sort_unstable();
    pairs
}

/// Sends in both directions and waits until all data has arrived.
pub(crate) fn data_flows(duo: &mut Duo) {
    for side in Side::BOTH {
        duo.send_all(side, 5_000, 20);
    }
    let both = |duo: &Duo| Side::BOTH.into_iter().all(|side| duo.all_arrived(side));
    assert!(duo.run_until(Span::from_secs(300), both), "data does not arrive");
}

/// Knowledge of a third party that has observed the handshake.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    key: Vec<u8>,
    /// Verification tag of each side's packets.
    tags: [u32; 2],
    /// Serial number of each side's first ASCONF.
    pub(crate) serials: [u32; 2],
}

impl Keys {
    /// Derives the keys from the kept INIT and INIT ACK, and the secret of both sides.
    pub(crate) fn of(duo: &Duo, secret: &[u8]) -> Self {
        let kept = duo.kept.as_ref().expect("packets are kept");
        let (mut init, mut ack) = (None, None);
        for (_, packet) in kept {
            let view = PacketView::parse(&packet.bytes).expect("a packet");
            match view.chunks().next().expect("a chunk").expect("a chunk").decode() {
                Ok(Chunk::Init(view)) => init = init.or(Some((vector(&view), view.repr()))),
                Ok(Chunk::InitAck(view)) => ack = ack.or(Some((vector(&view), view.repr()))),
                _ => {}
            }
        }
        let ((mut first, a), (mut second, b)) = (init.expect("an INIT"), ack.expect("an INIT-ACK"));
        assert_eq!(first.len(), second.len(), "then the order of bytes is that of numbers");
        if first > second {
            std::mem::swap(&mut first, &mut second);
        }
        Keys {
            key: [secret, &first, &second].concat(),
            // Packets from A carry B's tag.
            tags: [b.initiate_tag, a.initiate_tag],
            serials: [a.initial_tsn.get(), b.initial_tsn.get()],
        }
    }

    /// Returns a packet from a side with these chunks behind an AUTH.
    pub(crate) fn seal(
        &self,
        from: Side,
        chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>,
    ) -> Vec<u8> {
        self.write(from, |writer| {
            let pending = writer.auth(AuthRepr { key_id: 0, hmac_id: 3 }, 32)?;
            chunks(writer)?;
            writer.authenticate(pending, |covered| self.code(covered));
            Ok(())
        })
    }

    pub(crate) fn code(&self, covered: &[u8]) -> Vec<u8> {
        let mac: Hmac<Sha256> = Hmac::new_from_slice(&self.key).expect("any length will do");
        mac.chain_update(covered).finalize().into_bytes().to_vec()
    }

    /// Returns a packet from a side with these chunks.
    pub(crate) fn write(
        &self,
        from: Side,
        chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>,
    ) -> Vec<u8> {
        craft::packet_between([PORT, PORT], self.tags[from.index()], chunks)
    }

    /// Returns an authenticated ASCONF whose serial number is `ahead` of the first.
    pub(crate) fn asconf(&self, from: Side, ahead: u32, params: &[Param<'_>]) -> Vec<u8> {
        let serial = self.serials[from.index()].wrapping_add(ahead);
        self.seal(from, |writer| writer.asconf(serial, [0, 0, 0, 0].into(), params.iter().copied()))
    }
}

/// Returns RANDOM, CHUNKS and HMAC-ALGO in wire format.
fn vector(init: &InitView<'_>) -> Vec<u8> {
    let wanted = [ParamType::RANDOM, ParamType::CHUNK_LIST, ParamType::HMAC_ALGORITHMS];
    let find = |kind| init.raw_params().flatten().find(|param| param.kind() == kind);
    wanted.into_iter().filter_map(find).flat_map(|param| param.bytes().to_vec()).collect()
}

/// Passes a packet from `source` to the first address of a side, and returns the immediate answers.
pub(crate) fn inject(duo: &mut Duo, from: Side, source: IpAddr, bytes: Vec<u8>) -> Vec<Packet> {
    let to = from.other();
    let destination = duo.setup.address(to, 0);
    let packet = Packet { from, source, destination, bytes, may_fragment: false };
    let before = duo.kept.as_ref().map_or(0, Vec::len);
    let now = duo.now;
    duo.nodes[to.index()].handle(now, &packet);
    duo.settle();
    let kept = duo.kept.as_ref().expect("packets are kept");
    kept[before..].iter().filter(|(_, packet)| packet.from == to).map(|(_, packet)| packet.clone()).collect()
}

/// Returns the answers in an ASCONF-ACK: correlation identifiers, with the cause code of a refusal.
pub(crate) fn answers(packets: &[Packet]) -> Option<Vec<(u32, Option<CauseCode>)>> {
    packets.iter().find_map(|packet| {
        let view = PacketView::parse(&packet.bytes).expect("a packet");
        let mut chunks = view.chunks().map(|chunk| chunk.expect("a chunk").decode().expect("a chunk"));
        chunks.find_map(|chunk| match chunk {
            Chunk::AsconfAck(ack) => Some(ack.params().map(|param| answer(param.expect("whole"))).collect()),
            _ => None,
        })
    })
}

fn answer(param: Param<'_>) -> (u32, Option<CauseCode>) {
    match param {
        Param::Success { correlation } => (correlation, None),
        Param::ErrorCause { correlation, causes } => {
            let cause = RawCauses::parse(causes).next().expect("a cause").expect("whole");
            (correlation, Some(cause.code()))
        }
        other => panic!("{other:?} in an answer"),
    }
}

/// Returns `true` if a packet reports this cause in an ERROR or ABORT.
pub(crate) fn reports(packet: &Packet, code: CauseCode) -> bool {
    let has =
        |causes: anabranch_wire::Causes<'_>| causes.flatten().any(|cause: Cause<'_>| cause.code() == code);
    anabranch_tests::sight::holds(packet, |chunk| match chunk {
        Chunk::Error(error) => has(error.causes()),
        Chunk::Abort(abort) => has(abort.causes()),
        _ => false,
    })
}
