//! Parts of an association for tests without an endpoint, with minimal policies.

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_wire::{Chunk, GapBlock, Header, PacketView, PacketWriter, SackRepr, Tsn};
use bytes::Bytes;

use crate::address::PathAddress;
use crate::association::Identity;
use crate::association::ack_state::AckState;
use crate::association::dispatch::Dispatcher;
use crate::association::outputs::Outputs;
use crate::association::policies::PolicyState;
use crate::association::reachability::Reachability;
use crate::association::recovery::{Acknowledgement, LossRecovery};
use crate::association::state::State;
use crate::association::transmission::Outlet;
use crate::association::zero_checksum::ZeroChecksum;
use crate::config::{Integrity, PacketForm};
use crate::contents::Contents;
use crate::entropy::Entropy;
use crate::path_id::{PathId, PathState};
use crate::paths::{NewPath, PathOptions, Paths};
use crate::policy::{
    AckForm, AckPolicy, AckTiming, Arrival, BufferSharing, CongestionControl, Context, Decision, Estimates,
    EventSet, Holes, LeaveHeadOfLine, LivenessEffect, LivenessProof, LossDetection, LossTasks, LostChunk,
    Missing, MissingVerdict, Pacing, PathEstimator, PathFailover, Pick, Policies, Probing, Reason,
    RetransmitChoice, RetransmitPath, SackView, Scheduler, SendAsk, Slot, View, WaitFor, Window,
};
use crate::profile::Profile;
use crate::protection::PacketProtection;
use crate::send::{SendOptions, SendQueue, Sender, StreamScheduler};
use crate::time::{Span, Time};
use crate::units::{ChunkBytes, WindowBytes};

/// First TSN that is sent.
pub(crate) const FIRST: u64 = (1 << 32) + 1_000;

/// User bytes of each chunk.
pub(crate) const PAYLOAD: usize = 100;

const RULE: Reason = Reason::rule("a test");

/// Policies without state: windows of ten chunks, three missing reports, the first path with room.
struct Plain;

impl Slot for Plain {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::NONE
    }
}

impl PathEstimator for Plain {
    fn estimates(&self, _: PathId) -> Estimates {
        Estimates::default()
    }
}

impl Scheduler for Plain {
    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let free = view.paths.iter().find(|path| view.refusal(path.id).is_none());
        Decision::new(free.map_or(Pick::Wait(WaitFor::Window), |path| Pick::Path(path.id)), RULE)
    }
}

impl CongestionControl for Plain {
    fn window(&self, _: PathId) -> Window {
        let cwnd = ChunkBytes::new(16_000);
        Window { cwnd, ssthresh: cwnd, partial_bytes_acked: ChunkBytes::ZERO }
    }

    fn pacing(&self, _: PathId) -> Pacing {
        Pacing::OFF
    }

    fn last_reason(&self, _: PathId) -> Reason {
        RULE
    }

    fn set_window(&mut self, _: PathId, _: Window, _: Reason, _: &View<'_>) {}
}

impl LossDetection for Plain {
    fn holes(&mut self, sack: &SackView<'_>, _: &View<'_>) -> Holes {
        Holes::NeverRecovered { below: sack.highest_newly_acked }
    }

    fn missing(&mut self, chunk: &Missing, _: &SackView<'_>, _: &View<'_>) -> MissingVerdict {
        MissingVerdict { reports: 1, lost: chunk.reports + 1 >= 3 }
    }

    fn timed_out(&mut self, _: &Missing, _: &View<'_>) -> bool {
        true
    }

    fn due(&mut self, _: &View<'_>) -> LossTasks {
        LossTasks::default()
    }

    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        view.now.since(chunk.sent_at) > Span::from_secs(1)
    }
}

impl RetransmitPath for Plain {
    fn route(&mut self, chunk: &LostChunk, _: &View<'_>, _: &mut Context<'_>) -> Decision<RetransmitChoice> {
        Decision::new(RetransmitChoice::Path(chunk.path), RULE)
    }
}

impl AckPolicy for Plain {
    fn form(&self) -> AckForm {
        AckForm::Sack
    }

    fn timing(&mut self, arrival: &Arrival, _: &View<'_>) -> Decision<AckTiming> {
        let delay = AckTiming::Within(Span::from_millis(200));
        Decision::new(if arrival.packets >= 2 || arrival.gap { AckTiming::Now } else { delay }, RULE)
    }

    fn flags(&self, packets: u32, _: bool, _: &Profile) -> u8 {
        packets as u8
    }
}

impl BufferSharing for Plain {
    fn admits(&self, _: PathId, _: ChunkBytes, _: &View<'_>) -> bool {
        true
    }
}

impl PathFailover for Plain {
    fn on_error(&mut self, path: PathId, _: bool, view: &View<'_>) -> Decision<PathState> {
        let failed = view.path(path).error_count > 5;
        Decision::new(if failed { PathState::Inactive } else { view.path(path).state }, RULE)
    }

    fn on_proof(&mut self, _: PathId, _: LivenessProof, _: &View<'_>) -> LivenessEffect {
        LivenessEffect { state: PathState::Active, clears_errors: true }
    }

    fn probing(&self, _: PathId, _: &View<'_>) -> Probing {
        Probing::WhenIdle
    }

    fn promote(&mut self, _: &View<'_>, _: &mut Context<'_>) -> Option<Decision<PathId>> {
        None
    }
}

pub(crate) fn plain_policies() -> Policies {
    Policies {
        estimator: Box::new(Plain),
        scheduler: Box::new(Plain),
        congestion: Box::new(Plain),
        loss: Box::new(Plain),
        retransmit: Box::new(Plain),
        head_of_line: Box::new(LeaveHeadOfLine),
        ack: Box::new(Plain),
        buffer: Box::new(Plain),
        failover: Box::new(Plain),
    }
}

/// Parts that events of the sending side concern.
pub(crate) struct Rig {
    pub(crate) now: Time,
    pub(crate) paths: Paths,
    pub(crate) sender: Sender,
    pub(crate) policies: PolicyState,
    pub(crate) outputs: Outputs,
    pub(crate) reachability: Reachability,
}

impl Rig {
    /// Returns active paths, a large peer window, and minimal policies.
    pub(crate) fn new(paths: usize, profile: Profile) -> Self {
        let profile = Arc::new(profile);
        let options = PathOptions { default_packet_bytes: 1_452, searches_mtu: false, silence_limit: None };
        let mut rig = Rig {
            now: at(0),
            paths: Paths::new(Arc::clone(&profile), options),
            policies: PolicyState::new(plain_policies(), Entropy::new([7; 32]), &profile, false),
            sender: Sender::new(profile, SendQueue::new(1, 0, StreamScheduler::default()), FIRST, None),
            outputs: Outputs::new(true),
            reachability: Reachability::new(at(0), Entropy::new([8; 32])),
        };
        for host in 0..paths as u8 {
            let address =
                PathAddress::from((IpAddr::from([192, 0, 2, 1]), IpAddr::from([198, 51, 100, host])));
            let id = PathId::new(usize::from(host));
            rig.paths.add(id, NewPath { address, packet_bytes: 1_452, mtu: None });
            rig.paths.set_state(id, PathState::Active, rig.now);
            rig.sender.begin_path(id, rig.now);
        }
        rig.sender.begin_window(WindowBytes::new(1 << 20));
        rig.dispatcher().adopt_windows();
        rig.dispatcher().update_sender(Sender::estimate_window);
        rig
    }

    /// Borrows the parts that a packet with DATA passes through. Packets are plain, and no SACK is owed.
    pub(crate) fn outlet<'a>(&'a mut self, other: &'a mut PacketParts) -> Outlet<'a> {
        let PacketParts { identity, protection, ack, recovery, state } = other;
        let d = self.dispatcher();
        Outlet { d, identity, protection, ack, receiver: None, recovery, state }
    }

    /// Queues a message of one chunk.
    pub(crate) fn push(&mut self) {
        let now = self.now;
        self.sender.push(Bytes::from_static(&[7; PAYLOAD]), SendOptions::default(), now);
    }

    pub(crate) fn dispatcher(&mut self) -> Dispatcher<'_> {
        Dispatcher {
            now: self.now,
            paths: &mut self.paths,
            sender: &mut self.sender,
            policies: &mut self.policies,
            outputs: &mut self.outputs,
            reachability: &mut self.reachability,
        }
    }

    /// Sends new chunks, starts T3, and measures the first one.
    pub(crate) fn send(&mut self, path: PathId, count: usize) {
        for _ in 0..count {
            self.push();
            let now = self.now;
            let draft = self.sender.cut(PAYLOAD).expect("a message waits");
            let admitted = self.sender.admit(draft, path);
            self.dispatcher().update_sender(|sender| sender.transmit(admitted.tsn, now));
            self.paths.begin_measurement(path, admitted.tsn);
            self.paths.ensure_t3(path, now);
        }
    }

    /// Retransmits a lost chunk.
    pub(crate) fn resend(&mut self, tsn: u64, path: PathId) {
        let now = self.now;
        self.paths.end_measurement_of(path, tsn);
        self.sender.prepare_retransmission(tsn, false);
        self.dispatcher().update_sender(|sender| sender.retransmit(tsn, path, now));
    }

    pub(crate) fn in_flight(&self, path: PathId) -> u64 {
        self.paths.facts(path).in_flight.get() / (PAYLOAD as u64 + 16)
    }
}

/// Parts that packets need beside those of a [`Rig`].
pub(crate) struct PacketParts {
    identity: Identity,
    pub(crate) protection: PacketProtection,
    ack: AckState,
    recovery: LossRecovery,
    pub(crate) state: State,
}

impl PacketParts {
    pub(crate) fn new(paths: usize) -> Self {
        PacketParts {
            identity: Identity {
                local_tag: 1,
                peer_tag: 2,
                local_port: 3,
                peer_port: 4,
                initial_tsn: FIRST,
                initiator: true,
                peer_controls_streams: false,
                restarts: 0,
                integrity: Integrity::Checksum,
                zero_checksum: ZeroChecksum::default(),
                contents: Contents::Carried,
                form: PacketForm::Bytes,
            },
            protection: PacketProtection::new(None),
            ack: AckState::default(),
            recovery: LossRecovery::new(FIRST, paths),
            state: State::Established,
        }
    }
}

pub(crate) fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// Passes a SACK with this cumulative TSN, gap blocks relative to it, and duplicates to `take`.
pub(crate) fn with_sack<T>(
    cumulative: u64,
    gaps: &[(u16, u16)],
    duplicates: &[u64],
    take: impl FnOnce(&Acknowledgement<'_>) -> T,
) -> T {
    let mut bytes = [0; 512];
    let mut writer = PacketWriter::new(&mut bytes, Header::default()).expect("there is room");
    let repr = SackRepr { cum_tsn: Tsn::from_unwrapped(cumulative), a_rwnd: 1 << 20, flags: 0 };
    let gaps = gaps.iter().map(|&(start, end)| GapBlock { start, end });
    let duplicates = duplicates.iter().map(|&tsn| Tsn::from_unwrapped(tsn));
    writer.sack(&repr, gaps, duplicates).expect("there is room");
    let length = writer.finish();
    let packet = PacketView::parse(&bytes[..length]).expect("a packet");
    let chunk = packet.chunks().next().expect("a chunk").expect("a whole chunk");
    match chunk.decode() {
        Ok(Chunk::Sack(sack)) => take(&Acknowledgement::from(sack)),
        other => panic!("not a SACK: {other:?}"),
    }
}
