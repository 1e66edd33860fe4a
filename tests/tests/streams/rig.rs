//! Endpoints that change streams, and packets with RE-CONFIG that a peer could send.

use anabranch_core::time::Span;
use anabranch_core::{Association, AssociationEvent, StreamChanges, StreamDirection};
use anabranch_tests::duo::{Duo, PORT, Setup};
use anabranch_tests::hostile::craft;
use anabranch_tests::network::{Packet, Side};
use anabranch_wire::{Chunk, NoSpace, PacketView, PacketWriter, Param, ReconfigResult};

pub(crate) const A: usize = Side::A as usize;
pub(crate) const B: usize = Side::B as usize;

/// First TSN of both sides, and number of their first request.
pub(crate) const FIRST: u32 = 1_000;

/// Maximum number of streams in each direction.
pub(crate) const MOST_STREAMS: u16 = 16;

/// Returns a setup in which both sides change streams.
pub(crate) fn setup(pairs: usize, scheme: &str) -> Setup {
    Setup::new(pairs, scheme, "rfc9260").with(|config| {
        config.initial_tsn = Some(FIRST);
        config.stream_changes = Some(StreamChanges { max_streams: MOST_STREAMS });
    })
}

/// Returns a connected pair with confirmed paths, which keeps all packets.
pub(crate) fn connected(setup: Setup) -> Duo {
    let mut duo = Duo::new(setup);
    duo.kept = Some(Vec::new());
    duo.connect();
    let up =
        |duo: &Duo| duo.nodes.iter().all(|n| n.try_association().is_some_and(Association::is_established));
    assert!(duo.run_until(Span::from_secs(60), up), "the handshake takes too long");
    duo.run(Span::from_secs(1));
    duo
}

pub(crate) fn association(duo: &mut Duo, side: Side) -> &mut Association {
    duo.nodes[side.index()].try_association_mut().expect("there is an association")
}

/// Sends ordered messages on a stream.
pub(crate) fn send(duo: &mut Duo, side: Side, stream: u16, count: usize) {
    for _ in 0..count {
        let sent = duo.send(side, 2_000, stream, false);
        sent.expect("there is an association").expect("it takes the message");
    }
    duo.settle();
}

pub(crate) fn reset(duo: &mut Duo, side: Side, streams: &[u16]) {
    let now = duo.now;
    association(duo, side).reset_streams(now, streams).expect("the streams exist");
    duo.settle();
}

/// Returns the streams of the resets that a side has reported for a direction.
pub(crate) fn resets(duo: &Duo, side: Side, wanted: StreamDirection) -> Vec<Vec<u16>> {
    let told = duo.nodes[side.index()].told.iter();
    told.filter_map(|event| match event {
        AssociationEvent::StreamsReset { direction, streams } if *direction == wanted => {
            Some(streams.clone())
        }
        _ => None,
    })
    .collect()
}

/// Lets time pass until all messages of both sides have arrived.
pub(crate) fn arrive(duo: &mut Duo) {
    let done = |duo: &Duo| Side::BOTH.into_iter().all(|side| duo.all_arrived(side));
    assert!(duo.run_until(Span::from_secs(300), done), "data does not arrive");
}

/// Returns stream and SSN of each DATA chunk from a side, in the order of sending.
pub(crate) fn numbers(duo: &Duo, from: Side) -> Vec<(u16, u16)> {
    let kept = duo.kept.as_ref().expect("packets are kept").iter().map(|(_, packet)| packet);
    let data = |packet: &Packet| {
        let view = PacketView::parse(&packet.bytes).expect("a packet");
        let chunks = view.chunks().flatten().filter_map(|chunk| chunk.data());
        chunks.map(|data| (data.stream().get(), data.ssn().get())).collect::<Vec<_>>()
    };
    kept.filter(|packet| packet.from == from).flat_map(data).collect()
}

/// Returns `true` if a packet has a RE-CONFIG.
pub(crate) fn has_re_config(packet: &Packet) -> bool {
    !params_of(packet, |_| true).is_empty()
}

/// Returns `true` if a packet has a RE-CONFIG with an answer.
pub(crate) fn has_answer(packet: &Packet) -> bool {
    !params_of(packet, |param| matches!(param, Param::ReconfigResponse { .. })).is_empty()
}

fn params_of(packet: &Packet, wanted: impl Fn(&Param<'_>) -> bool) -> Vec<String> {
    let view = PacketView::parse(&packet.bytes).expect("a packet");
    let mut found = Vec::new();
    for chunk in view.chunks().flatten() {
        if let Ok(Chunk::ReConfig(view)) = chunk.decode() {
            found.extend(view.params().flatten().filter(|param| wanted(param)).map(|p| format!("{p:?}")));
        }
    }
    found
}

/// Returns the answers in a packet.
fn answers_in(packet: &Packet) -> Vec<(u32, ReconfigResult)> {
    let view = PacketView::parse(&packet.bytes).expect("a packet");
    let mut found = Vec::new();
    for chunk in view.chunks().flatten() {
        if let Ok(Chunk::ReConfig(view)) = chunk.decode() {
            found.extend(view.params().flatten().filter_map(|param| match param {
                Param::ReconfigResponse { response, result, .. } => Some((response, result)),
                _ => None,
            }));
        }
    }
    found
}

/// Verification tags of each side's packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags([u32; 2]);

impl Tags {
    /// Reads the tags from the kept INIT and INIT ACK. A has opened the association.
    pub(crate) fn of(duo: &Duo) -> Self {
        let mut tags = [0; 2];
        for (_, packet) in duo.kept.as_ref().expect("packets are kept") {
            let view = PacketView::parse(&packet.bytes).expect("a packet");
            match view.chunks().next().expect("a chunk").expect("a chunk").decode() {
                Ok(Chunk::Init(init)) => tags[B] = init.initiate_tag(),
                Ok(Chunk::InitAck(init)) => tags[A] = init.initiate_tag(),
                _ => {}
            }
        }
        Tags(tags)
    }

    /// Returns a packet from a side with these chunks.
    pub(crate) fn write(
        self,
        from: Side,
        chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>,
    ) -> Vec<u8> {
        craft::packet_between([PORT, PORT], self.0[from.index()], chunks)
    }
}

/// Passes a packet of A, which a hostile peer has made, to B. Returns the answers that B sends at once.
pub(crate) fn inject(duo: &mut Duo, bytes: Vec<u8>) -> Vec<(u32, ReconfigResult)> {
    let (source, destination) = (duo.setup.address(Side::A, 0), duo.setup.address(Side::B, 0));
    let before = duo.kept.as_ref().map_or(0, Vec::len);
    duo.deliver(&Packet { from: Side::A, source, destination, bytes, may_fragment: false });
    duo.settle_side(Side::B);
    let kept = &duo.kept.as_ref().expect("packets are kept")[before..];
    kept.iter()
        .filter(|(_, packet)| packet.from == Side::B)
        .flat_map(|(_, packet)| answers_in(packet))
        .collect()
}

/// Passes a RE-CONFIG of A with these parameters to B. Returns the answers.
pub(crate) fn request(duo: &mut Duo, params: &[Param<'_>]) -> Vec<(u32, ReconfigResult)> {
    let bytes = Tags::of(duo).write(Side::A, |writer| writer.re_config(params.iter().copied()));
    inject(duo, bytes)
}

/// Changes each answer in a packet of B into a refusal.
pub(crate) fn deny(packet: &mut Packet) -> bool {
    change_answers(packet, ReconfigResult::DENIED)
}

/// Changes each answer in a packet of B into "In progress".
pub(crate) fn never_finish(packet: &mut Packet) -> bool {
    change_answers(packet, ReconfigResult::IN_PROGRESS)
}

fn change_answers(packet: &mut Packet, result: ReconfigResult) -> bool {
    let answers = answers_in(packet);
    if packet.from == Side::B && !answers.is_empty() {
        let header = PacketView::parse(&packet.bytes).expect("a packet").header();
        let mut bytes = vec![0; 2000];
        let mut writer = PacketWriter::new(&mut bytes, header).expect("room for a header");
        let params = answers.iter().map(|&(response, _)| Param::ReconfigResponse {
            response,
            result,
            next_tsns: None,
        });
        writer.re_config(params).expect("room for answers");
        let length = writer.finish();
        bytes.truncate(length);
        packet.bytes = bytes;
    }
    true
}
