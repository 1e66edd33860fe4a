//! RTX-CWND, RTX-SSTHRESH and RTX-LOSSRATE (Iyengar 2006), and DB-CMT's RTX-CL: the active path that is best by one figure, or
//! among equals by a second one. Ties are resolved by coin flips along the list, as in ns-2.

use anabranch_core::policy::{
    Context, Decision, LostChunk, PathFacts, Reason, Refusal, Refused, RetransmitChoice, RetransmitPath, View,
};
use anabranch_core::profile::{LossRates, Profile};

use crate::definition::Equation;
use crate::retransmit::{if_room, nowhere};

pub(crate) const RTX_BEST: Equation = Equation {
    name: "RTX-CWND, RTX-SSTHRESH, RTX-LOSSRATE",
    rule: "of the active paths the one with the largest cwnd, the largest ssthresh, or the lowest loss rate",
    file: file!(),
};

pub(crate) const RTX_CL: Equation = Equation {
    name: "Algorithm 2 (RTX-CL)",
    rule: "the path with the largest cwnd; of several the one with the lowest loss rate; of several any one",
    file: file!(),
};

/// Figures that decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// Largest congestion window.
    Cwnd,
    /// Largest slow-start threshold.
    Ssthresh,
    /// Lowest loss rate according to the profile: measured, or unset and therefore equal on all paths.
    ProfileLossRate,
    /// Lowest measured loss rate; a path without losses counts as lossless.
    LossRate,
    /// Largest congestion window, and among equals the lowest measured loss rate: RTX-CL (DB-CMT, Algorithm 2).
    CwndThenLossRate,
}

impl Preference {
    /// Returns the score of a path. Larger is better; the second part decides among paths with an equal first part.
    fn score(self, path: &PathFacts, profile: &Profile) -> (f64, f64) {
        let cwnd = path.cwnd.get() as f64;
        let lossless = -path.estimates.loss_rate.unwrap_or(0.0);
        match self {
            Preference::Cwnd => (cwnd, 0.0),
            Preference::Ssthresh => (path.ssthresh.get() as f64, 0.0),
            Preference::ProfileLossRate if profile.loss_rates == LossRates::Unset => (0.0, 0.0),
            Preference::ProfileLossRate | Preference::LossRate => (lossless, 0.0),
            Preference::CwndThenLossRate => (cwnd, lossless),
        }
    }

    fn reason(self, (score, second): (f64, f64), second_decided: bool) -> Reason {
        match self {
            Preference::CwndThenLossRate if second_decided => {
                Reason::figure("lowest loss rate of the largest windows", "loss_rate", -second)
            }
            Preference::Cwnd | Preference::CwndThenLossRate => {
                Reason::figure("largest window", "cwnd_bytes", score)
            }
            Preference::Ssthresh => Reason::figure("largest threshold", "ssthresh_bytes", score),
            Preference::ProfileLossRate | Preference::LossRate => {
                Reason::figure("lowest loss rate", "loss_rate", -score)
            }
        }
    }
}

/// Retransmits on the best path by one figure, or by one and then another.
#[derive(Clone, Debug)]
pub struct Best {
    /// Figure by which paths are compared.
    pub by: Preference,
}

ignores_events! { Best }

impl RetransmitPath for Best {
    copied!(RetransmitPath);

    fn route(
        &mut self,
        _: &LostChunk,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Decision<RetransmitChoice> {
        let mut best: Option<&PathFacts> = None;
        let mut refused = Refused::new();
        // Set if the second figure decided between equals.
        let mut second_decided = false;
        for path in view.paths {
            if !path.is_active() {
                refused.push((path.id, Refusal::State));
                continue;
            }
            let Some(other) = best else {
                best = Some(path);
                continue;
            };
            let (new, old) = (self.by.score(path, view.profile), self.by.score(other, view.profile));
            let takes = new > old || (new == old && context.coin());
            second_decided =
                if new.0 == old.0 { second_decided || new.1 != old.1 } else { second_decided && !takes };
            refused.push((if takes { other.id } else { path.id }, Refusal::Preference));
            if takes {
                best = Some(path);
            }
        }
        match best {
            Some(path) => {
                if_room(path, self.by.reason(self.by.score(path, view.profile), second_decided), refused)
            }
            None => nowhere(),
        }
    }

    /// Only equals are decided by chance.
    fn wait_holds(&self, view: &View<'_>) -> bool {
        let score = |path: &PathFacts| self.by.score(path, view.profile);
        let mut others = view.paths.iter().filter(|path| path.is_active());
        while let Some(path) = others.next() {
            if others.clone().any(|other| score(other) == score(path)) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, lost_on, path, routed};
    use anabranch_core::PathState;
    use anabranch_core::policy::{LossCause, WaitFor};

    const ALL: [Preference; 4] =
        [Preference::Cwnd, Preference::Ssthresh, Preference::LossRate, Preference::CwndThenLossRate];

    #[test]
    fn unset_loss_rates_leave_the_choice_to_the_coin() {
        let mut world = each_best_in_one();
        world.paths.pop();
        let counts = world.tally(|world| routed(&route(world, Preference::ProfileLossRate)));
        assert!(counts.iter().all(|count| (75..=125).contains(count)), "{counts:?} of 200");
    }

    #[test]
    fn measured_loss_rates_decide_where_the_profile_measures() {
        let mut world = each_best_in_one();
        world.profile.loss_rates = LossRates::Measured;
        let decision = route(&mut world, Preference::ProfileLossRate);
        assert_eq!(decision.choice, RetransmitChoice::Path(path(2)));
    }

    fn route(world: &mut World, by: Preference) -> Decision<RetransmitChoice> {
        world.route(&mut Best { by }, lost_on(0, LossCause::FastRetransmit))
    }

    /// Returns three paths: the first has the largest window, the second the largest threshold, the third the lowest loss rate.
    fn each_best_in_one() -> World {
        let mut world = World::new(Profile::ns2_multipath(), 3);
        let figures = [(9000, 4000, 0.03), (8000, 7000, 0.02), (7000, 5000, 0.01)];
        for (facts, (cwnd, ssthresh, loss_rate)) in world.paths.iter_mut().zip(figures) {
            facts.cwnd = bytes(cwnd);
            facts.ssthresh = bytes(ssthresh);
            facts.estimates.loss_rate = Some(loss_rate);
        }
        world
    }

    #[test]
    fn the_path_that_is_best_by_the_figure_is_chosen_and_the_figure_named() {
        let mut world = each_best_in_one();
        let expected = [
            (0, Reason::figure("largest window", "cwnd_bytes", 9000.0)),
            (1, Reason::figure("largest threshold", "ssthresh_bytes", 7000.0)),
            (2, Reason::figure("lowest loss rate", "loss_rate", 0.01)),
            (0, Reason::figure("largest window", "cwnd_bytes", 9000.0)),
        ];
        for (by, (index, reason)) in ALL.into_iter().zip(expected) {
            let decision = route(&mut world, by);
            assert_eq!((decision.choice, decision.reason), (RetransmitChoice::Path(path(index)), reason));
            assert_eq!(decision.refused.len(), 2);
            assert!(
                decision.refused.iter().all(|&(id, why)| id != path(index) && why == Refusal::Preference)
            );
        }
    }

    #[test]
    fn wait_holds_unless_two_active_paths_have_the_same_figure() {
        let (mut world, policy) = (each_best_in_one(), Best { by: Preference::Cwnd });
        assert!(policy.wait_holds(&world.view()));
        world.paths[2].cwnd = world.paths[1].cwnd;
        assert!(!policy.wait_holds(&world.view()));
        world.paths[2].state = PathState::Inactive;
        assert!(policy.wait_holds(&world.view()));
    }

    #[test]
    fn path_and_cause_of_the_loss_do_not_affect_the_choice() {
        let mut world = each_best_in_one();
        for cause in [LossCause::FastRetransmit, LossCause::Timeout] {
            for from in 0..3 {
                let decision = world.route(&mut Best { by: Preference::Ssthresh }, lost_on(from, cause));
                assert_eq!(decision.choice, RetransmitChoice::Path(path(1)));
            }
        }
    }

    #[test]
    fn a_path_that_lost_nothing_yet_counts_as_lossless() {
        let mut world = each_best_in_one();
        world.paths[1].estimates.loss_rate = None;
        let decision = route(&mut world, Preference::LossRate);
        assert_eq!(decision.choice, RetransmitChoice::Path(path(1)));
        assert_eq!(decision.reason.value, 0.0);
    }

    #[test]
    fn rtx_cl_asks_for_the_loss_rate_only_among_the_largest_windows() {
        let mut world = each_best_in_one();
        world.paths[1].cwnd = bytes(9000);
        let decision = route(&mut world, Preference::CwndThenLossRate);
        assert_eq!(
            decision.choice,
            RetransmitChoice::Path(path(1)),
            "0.02 is less than 0.03; the third has a smaller window"
        );
        let reason = Reason::figure("lowest loss rate of the largest windows", "loss_rate", 0.02);
        assert_eq!(decision.reason, reason);
        world.paths[2].cwnd = bytes(9001);
        let decision = route(&mut world, Preference::CwndThenLossRate);
        assert_eq!(decision.choice, RetransmitChoice::Path(path(2)));
        assert_eq!(decision.reason, Reason::figure("largest window", "cwnd_bytes", 9001.0));
    }

    #[test]
    fn rtx_cl_chooses_at_random_between_equal_paths() {
        let mut world = each_best_in_one();
        world.paths[1].cwnd = bytes(9000);
        world.paths[1].estimates.loss_rate = Some(0.03);
        let counts = world.tally(|world| routed(&route(world, Preference::CwndThenLossRate)));
        assert!(counts[..2].iter().all(|count| (75..=125).contains(count)), "{counts:?} of 200");
        assert_eq!(counts[2], 0);
        assert_eq!(route(&mut world, Preference::CwndThenLossRate).reason.rule, "largest window");
    }

    #[test]
    fn of_two_equal_paths_each_is_chosen_half_the_time() {
        for by in ALL {
            let counts = World::new(Profile::ns2_multipath(), 2).tally(|world| routed(&route(world, by)));
            assert!(counts.iter().all(|count| (75..=125).contains(count)), "{by:?}: {counts:?} of 200");
        }
    }

    #[test]
    fn of_three_equal_paths_the_last_in_the_list_gets_half() {
        let counts =
            World::new(Profile::ns2_multipath(), 3).tally(|world| routed(&route(world, Preference::Cwnd)));
        assert!((30..=70).contains(&counts[0]), "{counts:?} of 200");
        assert!((30..=70).contains(&counts[1]), "{counts:?} of 200");
        assert!((75..=125).contains(&counts[2]), "{counts:?} of 200");
    }

    #[test]
    fn tie_below_the_best_draws_no_random_number() {
        let mut world = World::new(Profile::ns2_multipath(), 3);
        world.paths[2].cwnd = bytes(4381);
        assert_eq!(world.tally(|world| routed(&route(world, Preference::Cwnd))), [0, 0, 200]);
    }

    #[test]
    fn there_is_no_second_choice_when_the_best_path_has_no_room() {
        let mut world = each_best_in_one();
        world.paths[0].in_flight = bytes(9000);
        let decision = route(&mut world, Preference::Cwnd);
        assert_eq!(decision.choice, RetransmitChoice::Wait(WaitFor::Window));
        assert!(decision.refused.contains(&(path(0), Refusal::WindowFull)));
        assert!(decision.refused.contains(&(path(1), Refusal::Preference)));
        assert!(decision.refused.contains(&(path(2), Refusal::Preference)));
    }

    #[test]
    fn exempt_packet_counts_as_room_and_spent_burst_does_not() {
        let mut world = each_best_in_one();
        world.paths[0].in_flight = bytes(9000);
        world.paths[0].exempt_packets = 1;
        assert_eq!(route(&mut world, Preference::Cwnd).choice, RetransmitChoice::Path(path(0)));
        world.paths[0].resend_burst_left = 0;
        assert_eq!(route(&mut world, Preference::Cwnd).choice, RetransmitChoice::Wait(WaitFor::Window));
    }

    #[test]
    fn an_exemption_of_another_path_is_of_no_use() {
        let mut world = each_best_in_one();
        world.paths[0].in_flight = bytes(9000);
        world.paths[1].exempt_packets = 1;
        assert_eq!(route(&mut world, Preference::Cwnd).choice, RetransmitChoice::Wait(WaitFor::Window));
    }

    #[test]
    fn lost_chunks_that_wait_take_no_room_from_retransmissions() {
        let mut world = World::new(Profile::ns2_multipath(), 1);
        world.paths[0].in_flight = bytes(M);
        world.paths[0].lost_unsent = bytes(5 * M);
        assert_eq!(route(&mut world, Preference::Cwnd).choice, RetransmitChoice::Path(path(0)));
    }

    #[test]
    fn inactive_paths_are_skipped_despite_a_better_figure() {
        for state in [PathState::Unconfirmed, PathState::PotentiallyFailed, PathState::Inactive] {
            for (by, best, second) in [
                (Preference::Cwnd, 0, 1),
                (Preference::Ssthresh, 1, 2),
                (Preference::LossRate, 2, 1),
                (Preference::CwndThenLossRate, 0, 1),
            ] {
                let mut world = each_best_in_one();
                world.paths[best].state = state;
                let decision = route(&mut world, by);
                assert_eq!(decision.choice, RetransmitChoice::Path(path(second)), "{by:?}");
                assert!(decision.refused.contains(&(path(best), Refusal::State)));
            }
        }
    }

    #[test]
    fn with_no_path_active_it_waits() {
        let mut world = each_best_in_one();
        world.paths.iter_mut().for_each(|facts| facts.state = PathState::Inactive);
        assert!(
            ALL.into_iter().all(|by| route(&mut world, by).choice == RetransmitChoice::Wait(WaitFor::Window))
        );
    }
}
