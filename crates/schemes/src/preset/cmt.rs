//! `cmt`: concurrent multipath transfer with its three repairs.
//!
//! CMT's scheduler as in ns-2: in each send opportunity every path's window is filled in turn, beginning with the path after the
//! one that last carried new data.
//!
//! It is not a packet round robin: consecutive TSNs use one path, and in steady state the path of the acknowledged data gets new
//! data.

use anabranch_core::PathId;
use anabranch_core::policy::{
    Context, Decision, Event, EventKind, EventSet, Pick, Policies, Reason, Refused, Scheduler, SendAsk, Slot,
    View, WaitFor,
};
use anabranch_core::profile::Profile;

use crate::ack::delayed::{DAC_RECEIVER, SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::{AVOIDANCE, CUC_GROWTH, CUT, SLOW_START, cuc};
use crate::congestion::cut::{floor, floored};
use crate::congestion::{GrowthGate, WindowControl};
use crate::definition::{Card, Choice, Equation, Parameter, Preset, SACK_PROCESSING, Values};
use crate::failover::error_counter::PATH_FAILURE;
use crate::loss::missing_reports::{DAC_SENDER, SFR, TRIGGER, sfr};
use crate::preset::sctp;
use crate::preset::sctp::{CHOICE_AROUND, CHOICE_TRIGGER};
use crate::retransmit::asap::RTX_ASAP;
use crate::retransmit::best::RTX_BEST;
use crate::retransmit::same::RTX_SAME;
use crate::retransmit::{RTX, rtx};

pub(crate) const WINDOW_FILL: Equation = Equation {
    name: "scheduling, as in ns-2.35",
    rule: "in each send opportunity: from the path after the one that last carried new data, once around the list, send on \
           each path while outstanding < cwnd",
    file: file!(),
};

pub(crate) const CUC_SEARCH: Equation = Equation {
    name: "CUC version 2, pseudo-cumulative TSNs",
    rule: "for each path: the earliest outstanding chunk that was sent once, and the earliest that was retransmitted; when \
           either is acknowledged, by the cumulative TSN or by a gap ack block, the path's pseudo-cumulative TSN advances",
    file: SACK_PROCESSING,
};

pub(crate) const CHOICE_SCHEDULING: Choice = Choice {
    question: "In which order do paths get new data?",
    answer: "The paper only requires room in the path's window. The order is that of ns-2, which is no packet round robin: \
             consecutive TSNs go to one path, and in a steady state the path whose data was acknowledged gets the new data.",
    parameter: "",
};

pub(crate) const CHOICE_NEW_ACK: Choice = Choice {
    question: "Is a chunk that only the cumulative TSN covers an acknowledgement on its path, for SFR and DAC?",
    answer: "As the profile defines: yes in `rfc9260`, no in `ns2`, which considers only gap ack blocks. It decides whether \
             DAC treats a SACK as mixed, and little else: the cumulative TSN is never above a missing one.",
    parameter: "",
};

pub(crate) const CHOICE_CUC: Choice = Choice {
    question: "Which version of CUC?",
    answer: "Version 2. Version 1 follows one TSN per path, which decreases when that chunk is retransmitted and is wrong when \
             it is sent on another path. `cuc=false` applies the standard's rule, not version 1.",
    parameter: "cuc",
};

pub(crate) const CHOICE_DAC_FLAGS: Choice = Choice {
    question: "How do the flags of a SACK contain the number of packets that it acknowledges?",
    answer: "As a number in the whole byte, as in ns-2. Other implementations use the two top bits or a separate field.",
    parameter: "",
};

pub(crate) const CHOICE_DAC_TIMER: Choice = Choice {
    question: "Which number has a SACK that the timer sent?",
    answer: "As the profile defines: the number of packets in `rfc9260`; zero in `ns2`, where the timer resets the counter \
             before the SACK is built, so that such a SACK may report no chunk missing.",
    parameter: "",
};

pub(crate) const CHOICE_RTX: Choice = Choice {
    question: "Which of the five retransmission policies is the default?",
    answer: "RTX-CWND: the paper recommends it besides RTX-SSTHRESH, and it is ns-2's default.",
    parameter: "rtx",
};

pub(crate) const CHOICE_RTX_FULL: Choice = Choice {
    question: "What happens if the window of the chosen path is full?",
    answer: "The chunk waits for that path, as in ns-2: there is no second choice. RTX-ASAP considers only paths with room.",
    parameter: "rtx",
};

pub(crate) const CHOICE_RTX_TIE: Choice = Choice {
    question: "Which of several equally good paths is chosen?",
    answer: "By coin tosses along the list of paths, as in ns-2: each path that equals the best so far replaces it with \
             probability 1/2. This is uniform for two paths, and favours later ones among more.",
    parameter: "",
};

pub(crate) const CHOICE_LOSS_RATE: Choice = Choice {
    question: "Which loss rate does RTX-LOSSRATE compare?",
    answer: "Bytes declared lost over bytes sent on the path since it exists. In ns-2 the script sets a rate, and without one \
             all paths are equal. Profile `ns2` does the same, and its `rtx-lossrate-measured` compares measured rates.",
    parameter: "rtx",
};

pub(crate) const CHOICE_TIMEOUT_MARKS: Choice = Choice {
    question: "Which chunks does a T3 expiry mark as lost?",
    answer: "All outstanding chunks on its path, as in RFC 9260 and in the code of ns-2. The papers also propose to exclude \
             chunks that were sent less than an SRTT ago; ns-2 has that as a comment.",
    parameter: "",
};

const PARAMETERS: &[Parameter] =
    &[rtx("rtx-cwnd"), TRIGGER, sfr(true), cuc(true), dac(true), SACK_EVERY, SACK_DELAY, floor("profile")];

/// Rules shared by the schemes that build on this one.
pub(crate) const RULES: &[Equation] = &[
    SLOW_START,
    AVOIDANCE,
    CUT,
    SFR,
    CUC_SEARCH,
    CUC_GROWTH,
    DAC_RECEIVER,
    DAC_SENDER,
    RTX_BEST,
    RTX_ASAP,
    RTX_SAME,
];

pub(crate) const CHOICES: &[Choice] = &[
    CHOICE_TRIGGER,
    CHOICE_SCHEDULING,
    CHOICE_NEW_ACK,
    CHOICE_CUC,
    CHOICE_DAC_FLAGS,
    CHOICE_DAC_TIMER,
    CHOICE_RTX,
    CHOICE_RTX_FULL,
    CHOICE_RTX_TIE,
    CHOICE_LOSS_RATE,
    CHOICE_TIMEOUT_MARKS,
    CHOICE_AROUND,
];

const CARD: Card = Card {
    summary: &[
        "New data fills each path's window in turn, all in one sequence of TSNs, which then arrive out of",
        "order. Plain SCTP mistakes that for loss, stops the growth of windows and sends a SACK for each packet.",
        "Three repairs solve this: only acknowledgements on a chunk's own path report it missing (SFR), a path's",
        "window grows with its own pseudo-cumulative TSN (CUC), and gaps trigger no SACK at once while SACKs",
        "state the number of packets that they acknowledge (DAC).",
    ],
    equations: &[&[WINDOW_FILL], RULES, &[PATH_FAILURE]],
    choices: &[CHOICES],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt",
    about: "Concurrent multipath transfer with its own split fast retransmit, window update and delayed acks",
    source: "Iyengar, Amer, Stewart 2006; ns-2.35",
    multipath: true,
    coupled: false,
    unfair_because: "",
    owns: &[],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

pub(crate) fn build(values: &Values) -> Policies {
    Policies {
        scheduler: Box::new(RotatingWindowFill::default()),
        congestion: Box::new(WindowControl::new(GrowthGate::from_values(values))),
        ..sctp::policies(values, RTX.get(values)())
    }
}

/// Scheduler: fills each path's window in turn, with a rotating start.
#[derive(Clone, Debug, Default)]
pub struct RotatingWindowFill {
    /// Index of the path at which the current opportunity began.
    start: usize,
    /// Number of paths skipped in the current opportunity.
    passed: usize,
}

impl Slot for RotatingWindowFill {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[EventKind::SendOpportunity])
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        if let Event::SendOpportunity(_) = event {
            self.start = view.association.last_new_data_path.map_or(0, |p| p.index() + 1);
            self.passed = 0;
        }
    }
}

impl Scheduler for RotatingWindowFill {
    copied!(Scheduler);

    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let mut refused = Refused::new();
        let paths = view.paths.len();
        // A skipped path is not visited again in this opportunity: nothing can free its window meanwhile.
        while self.passed < paths {
            let id = PathId::new((self.start + self.passed) % paths);
            match view.refusal(id) {
                None => {
                    let free = view.path(id).cwnd - view.outstanding(id);
                    let reason =
                        Reason::figure("fills the path's window in turn", "free_bytes", free.get() as f64);
                    return Decision::with_refused(Pick::Path(id), reason, refused);
                }
                Some(why) => {
                    refused.push((id, why));
                    self.passed += 1;
                }
            }
        }
        Decision::with_refused(Pick::Wait(WaitFor::Window), Reason::rule("every window is full"), refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::Refusal;
    use anabranch_core::profile::Profile;

    /// Sends one packet on the scheduler's choice. Returns `None` if it waits.
    fn send(world: &mut World, scheduler: &mut RotatingWindowFill) -> Option<usize> {
        let Pick::Path(id) = world.pick(scheduler).choice else { return None };
        world.paths[id.index()].in_flight += bytes(M);
        world.association.last_new_data_path = Some(id);
        Some(id.index())
    }

    /// Returns the paths of all packets sent in one send opportunity.
    fn turn(world: &mut World, scheduler: &mut RotatingWindowFill) -> Vec<usize> {
        world.begin_send_opportunity(scheduler);
        std::iter::from_fn(|| send(world, scheduler)).collect()
    }

    #[test]
    fn one_window_is_filled_before_the_next() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        // 4380 B admit a third packet of 1468 B, because 2936 B are less than 4380 B.
        assert_eq!(turn(&mut world, &mut RotatingWindowFill::default()), [0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn the_reason_names_the_free_part_of_the_window() {
        let mut world = World::new(Profile::ns2_multipath(), 1);
        let mut scheduler = RotatingWindowFill::default();
        world.begin_send_opportunity(&mut scheduler);
        let mut free = Vec::new();
        for _ in 0..3 {
            let reason = world.pick(&mut scheduler).reason;
            assert_eq!(reason.figure, "free_bytes");
            free.push(reason.value);
            world.paths[0].in_flight += bytes(M);
        }
        assert_eq!(free, [4380.0, 2912.0, 1444.0]);
    }

    #[test]
    fn a_turn_starts_after_the_path_that_last_carried_new_data() {
        let mut world = World::new(Profile::ns2_multipath(), 3);
        let mut scheduler = RotatingWindowFill::default();
        for (last, first) in [(None, 0), (Some(path(0)), 1), (Some(path(1)), 2), (Some(path(2)), 0)] {
            world.association.last_new_data_path = last;
            world.begin_send_opportunity(&mut scheduler);
            assert_eq!(world.pick(&mut scheduler).choice, Pick::Path(path(first)), "after {last:?}");
        }
    }

    #[test]
    fn within_a_turn_the_start_stays_where_it_was() {
        let mut world = World::new(Profile::ns2_multipath(), 3);
        world.association.last_new_data_path = Some(path(0));
        assert_eq!(turn(&mut world, &mut RotatingWindowFill::default()), [1, 1, 1, 2, 2, 2, 0, 0, 0]);
    }

    #[test]
    fn in_a_steady_state_the_path_whose_data_was_acked_gets_the_new_data() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        let mut scheduler = RotatingWindowFill::default();
        turn(&mut world, &mut scheduler);
        for acked in [1, 1, 0, 1, 0, 0] {
            world.paths[acked].in_flight -= bytes(2 * M);
            assert_eq!(turn(&mut world, &mut scheduler), [acked, acked]);
        }
    }

    #[test]
    fn skipped_path_is_not_visited_again_in_the_same_turn() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        let mut scheduler = RotatingWindowFill::default();
        world.paths[0].in_flight = bytes(4404);
        world.begin_send_opportunity(&mut scheduler);
        assert_eq!(send(&mut world, &mut scheduler), Some(1));
        world.paths[0].in_flight = bytes(0);
        assert_eq!(send(&mut world, &mut scheduler), Some(1));
        assert_eq!(send(&mut world, &mut scheduler), Some(1));
        assert_eq!(send(&mut world, &mut scheduler), None);
        assert_eq!(turn(&mut world, &mut scheduler), [0, 0, 0]);
    }

    #[test]
    fn inactive_paths_and_paths_without_burst_are_skipped_and_named() {
        let mut world = World::new(Profile::ns2_multipath(), 5);
        let mut scheduler = RotatingWindowFill::default();
        world.paths[0].state = PathState::PotentiallyFailed;
        world.paths[1].state = PathState::Inactive;
        world.paths[2].state = PathState::Unconfirmed;
        world.paths[3].burst_left = 0;
        world.begin_send_opportunity(&mut scheduler);
        let decision = world.pick(&mut scheduler);
        assert_eq!(decision.choice, Pick::Path(path(4)));
        let state = |index| (path(index), Refusal::State);
        assert_eq!(decision.refused.as_slice(), [state(0), state(1), state(2), (path(3), Refusal::Burst)]);
    }

    #[test]
    fn with_every_window_full_it_waits_and_says_why_of_each_path() {
        let mut world = World::new(Profile::ns2_multipath(), 3);
        let mut scheduler = RotatingWindowFill::default();
        world.paths[0].in_flight = bytes(4380);
        world.paths[1].state = PathState::Inactive;
        world.paths[1].in_flight = bytes(4380);
        world.paths[2].in_flight = bytes(5872);
        world.paths[2].burst_left = 0;
        world.association.last_new_data_path = Some(path(1));
        world.begin_send_opportunity(&mut scheduler);
        let decision = world.pick(&mut scheduler);
        assert_eq!(decision.choice, Pick::Wait(WaitFor::Window));
        // In the order of visits; state takes precedence over window, and window over burst.
        assert_eq!(
            decision.refused.as_slice(),
            [(path(2), Refusal::WindowFull), (path(0), Refusal::WindowFull), (path(1), Refusal::State)]
        );
    }

    #[test]
    fn lost_chunks_take_room_in_the_window_only_where_the_profile_counts_them() {
        for (profile, expected) in [(Profile::ns2_multipath(), 1), (Profile::rfc9260_multipath(), 0)] {
            let counts = profile.lost_counts_until_resent;
            let mut world = World::new(profile, 2);
            let mut scheduler = RotatingWindowFill::default();
            world.paths[0].in_flight = bytes(2 * M);
            world.paths[0].lost_unsent = bytes(M);
            world.begin_send_opportunity(&mut scheduler);
            assert_eq!(send(&mut world, &mut scheduler), Some(expected), "counts: {counts}");
        }
    }
}
