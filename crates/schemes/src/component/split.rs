//! `split`: equal shares of the buffers for all paths.
//!
//! Buffer splitting (Dreibholz et al. 2010, Adhari et al. 2011): each path may occupy one share of the send buffer, of the peer's
//! receive buffer, or of both, so that a slow path cannot fill them.

use anabranch_core::PathId;
use anabranch_core::policy::{BufferSharing, PathFacts, Policies, View};
use anabranch_core::units::ChunkBytes;

use crate::definition::{Card, Choice, ChoiceParameter, Component, Equation, Parameter, Role, Values};

pub(crate) const FILE: &str = file!();

pub(crate) const SIDE: ChoiceParameter<Side> = ChoiceParameter {
    name: "side",
    options: &[("sender", Side::Sender), ("receiver", Side::Receiver), ("both", Side::Both)],
    default: "both",
    about: "the buffer that is split",
    source: "Dreibholz et al. 2010; INET and usrsctp offer the three",
};

pub(crate) const PATHS: ChoiceParameter<SharingPaths> = ChoiceParameter {
    name: "paths",
    options: &[("active", SharingPaths::Active), ("all", SharingPaths::All)],
    default: "active",
    about: "the paths with a share",
    source: "INET: all; no publication has paths out of service",
};

const BY: ChoiceParameter<Occupancy> = ChoiceParameter {
    name: "by",
    options: &[("queued", Occupancy::Queued), ("outstanding", Occupancy::Outstanding)],
    default: "queued",
    about: "data of a path that counts: all its data in the send buffer, or the outstanding data",
    source: "INET: queued; usrsctp, and INET on demand: outstanding",
};

const PARAMETERS: &[Parameter] = &[SIDE.parameter(), BY.parameter(), PATHS.parameter()];

const CARD: Card = Card {
    summary: &[
        "A path gets new data only while its data in a buffer is within its equal share, so that a slow path",
        "cannot fill the buffer that a fast one needs. A path without data always gets a chunk.",
        "Equal shares suit paths of similar speed: a share below a path's window limits that path.",
    ],
    equations: &[&[
        Equation { name: "sender split", rule: "refuse if b_i + M > S / n", file: file!() },
        Equation {
            name: "receiver split",
            rule: "refuse if b_i + M > (peer's window + all outstanding) / n + M",
            file: file!(),
        },
    ]],
    choices: &[&[
        Choice {
            question: "Which data of path i counts (b_i)?",
            answer: "All its data in the send buffer, including chunks in gap ack blocks, as in INET. This limits a fast path \
                     by data that waits behind a slow path's hole; outstanding data alone does not.",
            parameter: "by",
        },
        Choice {
            question: "What is the effect of `nr-sack`?",
            answer: "Data that an NR-SACK releases has left the send buffer and does not count for either share, although the \
                     receiver still stores it. Outstanding data is the same with and without NR-SACKs.",
            parameter: "by",
        },
        Choice {
            question: "What is n?",
            answer: "The active paths: a share of a path that may not send would be unused.",
            parameter: "paths",
        },
        Choice {
            question: "In which unit is it computed?",
            answer: "b_i in chunk bytes, buffers as they are counted, without a correction for headers of 16 B per chunk.",
            parameter: "",
        },
        Choice {
            question: "What happens if a share is less than a chunk?",
            answer: "A path without data still gets a chunk, since nothing else would ever release it.",
            parameter: "",
        },
    ]],
};

pub(crate) const COMPONENT: Component = Component {
    name: "split",
    about: "Splits the send buffer, the receive buffer or both into equal shares for the paths",
    source: "Dreibholz et al. 2010; Adhari et al. 2011; INET; usrsctp",
    role: Role::BufferSharing,
    needs_multipath: true,
    parameters: PARAMETERS,
    card: CARD,
    apply,
};

fn apply(values: &Values, policies: Policies) -> Policies {
    let split = Split { side: SIDE.get(values), by: BY.get(values), sharers: PATHS.get(values) };
    Policies { buffer: Box::new(split), ..policies }
}

/// Buffers that are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Sender's buffer.
    Sender,
    /// Receiver's buffer.
    Receiver,
    /// Both buffers.
    Both,
}

impl Side {
    pub(crate) fn has_sender(self) -> bool {
        self != Side::Receiver
    }

    pub(crate) fn has_receiver(self) -> bool {
        self != Side::Sender
    }
}

/// Data by which a path occupies a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupancy {
    /// All data in the send buffer, including data that waits behind another path's hole.
    Queued,
    /// Outstanding data only.
    Outstanding,
}

/// Paths that have a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharingPaths {
    /// Active paths.
    Active,
    /// All paths, regardless of their state.
    All,
}

impl SharingPaths {
    /// Returns the number n of shares, at least one.
    pub(crate) fn count(self, view: &View<'_>) -> u64 {
        let paths = match self {
            SharingPaths::Active => view.active().count(),
            SharingPaths::All => view.paths.len(),
        };
        paths.max(1) as u64
    }
}

/// Equal shares of the buffers.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// Buffers that are split.
    pub side: Side,
    /// Data by which a path occupies a buffer.
    pub by: Occupancy,
    /// Paths that have a share.
    pub sharers: SharingPaths,
}

impl Split {
    fn occupied(&self, path: &PathFacts, view: &View<'_>) -> ChunkBytes {
        match self.by {
            Occupancy::Queued => path.held,
            // A bound chunk occupies its place already, and will be outstanding.
            Occupancy::Outstanding => view.outstanding(path.id) + path.bound,
        }
    }

    /// Refuses if b_i + M > S / n.
    fn sender_admits(&self, occupied: ChunkBytes, chunk: ChunkBytes, view: &View<'_>) -> bool {
        let share = view.association.send_buffer_limit.map(|limit| limit / self.sharers.count(view));
        share.is_none_or(|share| (occupied + chunk).get() <= share)
    }

    /// Refuses if b_i + M > (peer's window + all outstanding) / n + M: one chunk may overshoot, so its length M is on both sides.
    fn receiver_admits(&self, occupied: ChunkBytes, view: &View<'_>) -> bool {
        // The estimate of the peer's window excludes bound data as well as outstanding data.
        let bound: ChunkBytes = view.paths.iter().map(|path| path.bound).sum();
        let under_way = view.total_outstanding() + bound;
        let whole = view.association.peer_window.get().saturating_add(under_way.get());
        occupied.get() <= whole / self.sharers.count(view)
    }
}

ignores_events! { Split }

impl BufferSharing for Split {
    copied!(BufferSharing);

    fn admits(&self, path: PathId, chunk: ChunkBytes, view: &View<'_>) -> bool {
        let occupied = self.occupied(view.path(path), view);
        // A share smaller than a chunk would close the path forever: no event would open it.
        occupied.is_zero()
            || (!self.side.has_sender() || self.sender_admits(occupied, chunk, view))
                && (!self.side.has_receiver() || self.receiver_admits(occupied, view))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::profile::Profile;
    use anabranch_core::units::WindowBytes;

    const QUEUED: Split = Split { side: Side::Both, by: Occupancy::Queued, sharers: SharingPaths::Active };
    const OUTSTANDING: Split = Split { by: Occupancy::Outstanding, ..QUEUED };

    /// Creates two paths: the first has ten chunks, four outstanding, the second two, both outstanding. Buffer sizes are unknown.
    fn world() -> World {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        for (facts, (held, in_flight)) in world.paths.iter_mut().zip([(10, 4), (2, 2)]) {
            facts.held = bytes(held * M);
            facts.in_flight = bytes(in_flight * M);
        }
        world.association.peer_window = WindowBytes::new(1_000_000);
        world
    }

    fn admits(split: Split, world: &World) -> [bool; 2] {
        [0, 1].map(|index| split.admits(path(index), bytes(M), &world.view()))
    }

    #[test]
    fn a_path_may_fill_its_share_of_the_send_buffer_and_not_a_byte_more() {
        let sender = Split { side: Side::Sender, ..QUEUED };
        let mut world = world();
        // The first path needs 10 + 1 chunks: S = 22 * 1468 = 32,296 gives 16,148 = 11 * 1468 to each of two.
        world.association.send_buffer_limit = Some(32_296);
        assert_eq!(admits(sender, &world), [true, true]);
        world.association.send_buffer_limit = Some(32_295);
        assert_eq!(admits(sender, &world), [false, true]);
        // By outstanding data it needs 4 + 1: S = 14,680.
        let sender = Split { side: Side::Sender, ..OUTSTANDING };
        world.association.send_buffer_limit = Some(14_680);
        assert_eq!(admits(sender, &world), [true, true]);
        world.association.send_buffer_limit = Some(14_679);
        assert_eq!(admits(sender, &world), [false, true]);
    }

    #[test]
    fn a_send_buffer_without_a_limit_is_not_split() {
        assert_eq!(admits(Split { side: Side::Sender, ..QUEUED }, &world()), [true, true]);
    }

    #[test]
    fn a_path_may_overshoot_its_share_of_the_receive_buffer_by_one_chunk() {
        let receiver = Split { side: Side::Receiver, ..QUEUED };
        let mut world = world();
        // Outstanding are 4 + 2 chunks, 8,808 B. With 20,552 B left that is 29,360 B, 14,680 B each, as the first path has.
        world.association.peer_window = WindowBytes::new(20_552);
        assert_eq!(admits(receiver, &world), [true, true]);
        world.association.peer_window = WindowBytes::new(20_551);
        assert_eq!(admits(receiver, &world), [false, true]);
        // By outstanding data the first has 5,872 B: (2,936 + 8,808) / 2.
        let receiver = Split { side: Side::Receiver, ..OUTSTANDING };
        world.association.peer_window = WindowBytes::new(2_936);
        assert_eq!(admits(receiver, &world), [true, true]);
        world.association.peer_window = WindowBytes::new(2_935);
        assert_eq!(admits(receiver, &world), [false, true]);
    }

    #[test]
    fn sender_receiver_or_both_buffers_limit_as_configured() {
        let sides = [Side::Sender, Side::Receiver, Side::Both];
        let first = |world: &World| sides.map(|side| admits(Split { side, ..QUEUED }, world)[0]);
        let mut world = world();
        assert_eq!(first(&world), [true, true, true]);
        world.association.send_buffer_limit = Some(1000);
        assert_eq!(first(&world), [false, true, false]);
        world.association.peer_window = WindowBytes::ZERO;
        assert_eq!(first(&world), [false, false, false]);
        world.association.send_buffer_limit = None;
        assert_eq!(first(&world), [true, false, false]);
    }

    #[test]
    fn waiting_retransmissions_are_outstanding_if_the_profile_says_so() {
        let split = Split { side: Side::Sender, ..OUTSTANDING };
        for (profile, expected) in [(Profile::ns2_multipath(), false), (Profile::rfc9260_multipath(), true)] {
            // 4 + 1 + 1 chunks in a share of 5 in ns-2; the standard does not count lost chunks.
            let counts = profile.lost_counts_until_resent;
            let mut world = world();
            world.profile = profile;
            world.paths[0].lost_unsent = bytes(M);
            world.association.send_buffer_limit = Some(10 * M);
            assert_eq!(admits(split, &world)[0], !counts);
            assert_eq!(!counts, expected);
        }
    }

    #[test]
    fn bound_chunks_take_up_their_share() {
        let mut world = world();
        world.paths[0].bound = bytes(M);
        world.association.send_buffer_limit = Some(10 * M);
        assert!(!admits(Split { side: Side::Sender, ..OUTSTANDING }, &world)[0], "4 + 1 + 1 of 5");
        // (1,468 + 8,808 + 1,468) / 2 = 5,872 < 5 * 1,468; with one chunk more in the window it is 6,606; with two, 7,340.
        let receiver = Split { side: Side::Receiver, ..OUTSTANDING };
        let room = [1, 2, 3].map(|chunks| {
            world.association.peer_window = WindowBytes::new(chunks * M);
            admits(receiver, &world)[0]
        });
        assert_eq!(room, [false, false, true]);
    }

    #[test]
    fn shares_are_for_the_paths_in_service_or_for_all() {
        let mut world = world();
        world.paths[1].state = PathState::Inactive;
        world.association.send_buffer_limit = Some(11 * M);
        let all = Split { sharers: SharingPaths::All, ..QUEUED };
        assert_eq!([QUEUED, all].map(|split| admits(split, &world)[0]), [true, false]);
        // If no path is active, the buffer has one share.
        world.paths[0].state = PathState::Inactive;
        assert!(admits(QUEUED, &world)[0]);
    }

    #[test]
    fn empty_path_takes_a_chunk_with_any_share() {
        let mut world = World::new(Profile::ns2_multipath(), 4);
        world.association.send_buffer_limit = Some(0);
        for by in [Occupancy::Queued, Occupancy::Outstanding] {
            for side in [Side::Sender, Side::Receiver, Side::Both] {
                let split = Split { side, by, sharers: SharingPaths::All };
                assert!((0..4).all(|index| split.admits(path(index), bytes(M), &world.view())));
            }
        }
        world.paths[2].held = bytes(1);
        assert!(!QUEUED.admits(path(2), bytes(M), &world.view()));
    }

    #[test]
    fn more_buffer_never_closes_a_path() {
        for by in [Occupancy::Queued, Occupancy::Outstanding] {
            let split = Split { by, ..QUEUED };
            let mut world = world();
            let mut before = [false; 2];
            for step in 0..60 {
                world.association.send_buffer_limit = Some(step * 1000);
                world.association.peer_window = WindowBytes::new(step * 1000);
                let now = admits(split, &world);
                assert!(before.iter().zip(now).all(|(&before, now)| now || !before));
                before = now;
            }
            assert_eq!(before, [true, true]);
        }
    }
}
