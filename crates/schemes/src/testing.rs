//! Helpers for tests of policies: the facts of an association, set instead of measured.

use anabranch_core::policy::{
    AssociationFacts, Decision, Event, LossCause, LostChunk, OpportunityCause, PathFacts, Pick, Randomness,
    RetransmitChoice, RetransmitPath, Scheduler, SendAsk, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::Time;
use anabranch_core::units::ChunkBytes;
use anabranch_core::{PathId, PathState};

/// Largest chunk in these tests in bytes, as in ns-2: 1500 B minus 20 B of IP header and 12 B of common header.
pub(crate) const M: u64 = 1468;

/// Request for a packet of new data with one largest chunk.
pub(crate) const ASK: SendAsk = SendAsk { chunk: ChunkBytes::new(M), window_probe: false, duplicate: false };

pub(crate) fn bytes(n: u64) -> ChunkBytes {
    ChunkBytes::new(n)
}

pub(crate) fn path(index: usize) -> PathId {
    PathId::new(index)
}

pub(crate) fn lost_on(index: usize, cause: LossCause) -> LostChunk {
    LostChunk { tsn: 10, bytes: bytes(M), path: path(index), cause }
}

/// Facts shown to a policy.
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) profile: Profile,
    pub(crate) paths: Vec<PathFacts>,
    pub(crate) association: AssociationFacts,
    randomness: Randomness,
}

impl World {
    /// Creates active paths with windows of 4380 B and nothing in flight. The first is the primary path.
    pub(crate) fn new(profile: Profile, paths: usize) -> Self {
        let facts = |index| PathFacts {
            state: PathState::Active,
            primary: index == 0,
            cwnd: bytes(4380),
            ssthresh: bytes(65_536),
            ..PathFacts::new(path(index), bytes(M))
        };
        World {
            now: Time::from_nanos(1_000_000_000),
            profile,
            paths: (0..paths).map(facts).collect(),
            association: AssociationFacts::default(),
            randomness: Randomness::from_seed([0; 32]),
        }
    }

    /// Reseeds the random numbers, with the same facts.
    pub(crate) fn reseed(&mut self, seed: u8) {
        self.randomness = Randomness::from_seed([seed; 32]);
    }

    pub(crate) fn view(&self) -> View<'_> {
        View { now: self.now, profile: &self.profile, paths: &self.paths, association: &self.association }
    }

    /// Calls `decide` with the view and a context.
    pub(crate) fn with<T>(
        &mut self,
        decide: impl FnOnce(&View<'_>, &mut anabranch_core::policy::Context<'_>) -> T,
    ) -> T {
        let view = View {
            now: self.now,
            profile: &self.profile,
            paths: &self.paths,
            association: &self.association,
        };
        decide(&view, &mut self.randomness.context())
    }

    pub(crate) fn dispatch(&mut self, slot: &mut dyn Slot, event: &Event<'_>) {
        self.with(|view, context| slot.on_event(event, view, context));
    }

    pub(crate) fn begin_send_opportunity(&mut self, slot: &mut dyn Slot) {
        self.dispatch(slot, &Event::SendOpportunity(OpportunityCause::Sack));
    }

    pub(crate) fn pick(&mut self, scheduler: &mut dyn Scheduler) -> Decision<Pick> {
        self.with(|view, context| scheduler.pick(&ASK, view, context))
    }

    pub(crate) fn route(
        &mut self,
        policy: &mut dyn RetransmitPath,
        chunk: LostChunk,
    ) -> Decision<RetransmitChoice> {
        self.with(|view, context| policy.route(&chunk, view, context))
    }

    /// Returns how often each path is chosen over 200 seeds. The policy must always choose one.
    pub(crate) fn tally(&mut self, mut choose: impl FnMut(&mut Self) -> PathId) -> Vec<u32> {
        let mut counts = vec![0; self.paths.len()];
        for seed in 0..200 {
            self.reseed(seed);
            counts[choose(self).index()] += 1;
        }
        counts
    }
}

/// Returns the path of a route, and panics if it waits.
pub(crate) fn routed(decision: &Decision<RetransmitChoice>) -> PathId {
    decision.choice.path().unwrap_or_else(|| panic!("waits: {decision:?}"))
}
