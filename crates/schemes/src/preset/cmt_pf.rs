//! `cmt-pf`: CMT with a potentially failed state.
//!
//! CMT-PF (Natarajan 2008, 2009): a path that times out once gets no data until it answers a probe.

use anabranch_core::policy::{
    Context, Decision, LivenessEffect, LivenessProof, PathFailover, Policies, Probing, Reason, View,
};
use anabranch_core::time::Time;
use anabranch_core::{PathId, PathState};

use crate::ack::delayed::{SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::control::{PF, PF_RETURN, cuc};
use crate::congestion::cut::{floor, floored};
use crate::congestion::{GrowthGate, WindowControl};
use crate::definition::{Card, Choice, Equation, Parameter, Preset, Role, Values};
use crate::failover::{PF_PROBING, probing};
use crate::loss::missing_reports::{TRIGGER, sfr};
use crate::preset::cmt;
use crate::preset::cmt::WINDOW_FILL;
use crate::retransmit::rtx;

pub(crate) const FILE: &str = file!();

const PARAMETERS: &[Parameter] = &[
    PF.parameter(),
    rtx("rtx-cwnd"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    floor("profile"),
];

const CARD: Card = Card {
    summary: &[
        "As `cmt`, but after one T3 expiry or unanswered HEARTBEAT a path is potentially failed: it gets no data,",
        "but a HEARTBEAT at once and at each RTO, which doubles each time. An answer, or an acknowledgement of a",
        "chunk that was sent once and on that path, makes it active again. Without an active path, the",
        "potentially failed one with the fewest errors is used.",
    ],
    equations: &[
        &[
            Equation {
                name: "PF, entry",
                rule: "T3 expiry or unanswered HEARTBEAT on an active path: potentially failed; errors > Path.Max.Retrans (5): inactive",
                file: file!(),
            },
            PF_PROBING,
            PF_RETURN,
            Equation {
                name: "PF, no path active",
                rule: "of the potentially failed paths the one with the fewest errors, of those the one that failed last, of \
                       those one by coin tosses: active with cwnd = 1 M",
                file: file!(),
            },
        ],
        &[WINDOW_FILL],
        cmt::RULES,
    ],
    choices: &[
        &[
            Choice {
                question: "What is the window of a path that answered its probe?",
                answer: "Two chunks, the default of ns-2: slow start would have doubled one chunk during the probe's round \
                         trip.",
                parameter: "pf",
            },
            Choice {
                question: "Does the acknowledgement of a chunk that was sent more than once make its path active?",
                answer: "No, as in ns-2: it may belong to the copy on another path.",
                parameter: "",
            },
            Choice {
                question: "Which retransmission policies avoid potentially failed paths?",
                answer: "All, while another path is active. In ns-2 RTX-SAME and RTX-LOSSRATE do not.",
                parameter: "rtx",
            },
            Choice {
                question: "Does a path that was activated without a better one become potentially failed again?",
                answer: "As the profile defines: yes in `rfc9260`; in `ns2` only an error that makes the counter one has that \
                         effect, and such a path keeps its counter.",
                parameter: "",
            },
        ],
        cmt::CHOICES,
    ],
};

pub(crate) const PRESET: Preset = Preset {
    name: "cmt-pf",
    about: "CMT with a potentially failed state: after one time-out a path gets no data until it answers a probe",
    source: "Natarajan et al. 2008, 2009; ns-2.35; RFC 7829",
    multipath: true,
    coupled: false,
    unfair_because: "",
    owns: &[Role::Failover],
    parameters: PARAMETERS,
    card: CARD,
    profile: floored,
    build,
};

pub(crate) fn build(values: &Values) -> Policies {
    let control = WindowControl::new(GrowthGate::from_values(values)).with_window_after_probe(PF.get(values));
    Policies { congestion: Box::new(control), failover: Box::new(PotentiallyFailed), ..cmt::build(values) }
}

/// Failover: active, potentially failed after one error, inactive after too many.
#[derive(Clone, Debug, Default)]
pub struct PotentiallyFailed;

ignores_events! { PotentiallyFailed }

impl PathFailover for PotentiallyFailed {
    copied!(PathFailover);

    fn on_error(&mut self, path: PathId, _: bool, view: &View<'_>) -> Decision<PathState> {
        let facts = view.path(path);
        let errors = Reason::figure("consecutive errors", "errors", f64::from(facts.error_count));
        let state = match facts.state {
            _ if facts.error_count > view.profile.path_max_retrans => PathState::Inactive,
            // ns-2 enters the state only when the counter becomes one. Therefore a path that was promoted, because no other path is
            // better, continues to send.
            PathState::Active if facts.error_count == 1 || !view.profile.pf_at_first_error_only => {
                PathState::PotentiallyFailed
            }
            state => state,
        };
        Decision::new(state, errors)
    }

    /// An acknowledgement of a chunk that was sent more than once does not identify its path.
    fn on_proof(&mut self, path: PathId, proof: LivenessProof, view: &View<'_>) -> LivenessEffect {
        match proof {
            LivenessProof::Unambiguous | LivenessProof::Heartbeat => {
                LivenessEffect { state: PathState::Active, clears_errors: true }
            }
            LivenessProof::Ambiguous => LivenessEffect { state: view.path(path).state, clears_errors: false },
        }
    }

    fn probing(&self, path: PathId, view: &View<'_>) -> Probing {
        probing(view.path(path))
    }

    /// If no path is active, promotes the potentially failed path with the fewest errors; among those the one that failed last;
    /// among those by coin flip.
    fn promote(&mut self, view: &View<'_>, context: &mut Context<'_>) -> Option<Decision<PathId>> {
        let mut best: Option<(u32, Time, PathId)> = None;
        for path in view.paths.iter().filter(|p| p.state == PathState::PotentiallyFailed) {
            let since = path.potentially_failed_since.unwrap_or(Time::ZERO);
            let better = best.is_none_or(|(errors, latest, _)| {
                path.error_count < errors
                    || (path.error_count == errors && (since > latest || (since == latest && context.coin())))
            });
            if better {
                best = Some((path.error_count, since, path.id));
            }
        }
        let (errors, _, id) = best?;
        Some(Decision::new(
            id,
            Reason::figure("fewest errors of the potentially failed paths", "errors", f64::from(errors)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, path};
    use anabranch_core::profile::Profile;

    use PathState::{Active, Inactive, PotentiallyFailed as Failing, Unconfirmed};

    /// Returns the state after the error that increased the counter to `errors`.
    fn after(profile: Profile, errors: u32, state: PathState) -> PathState {
        let mut world = World::new(profile, 1);
        world.paths[0].state = state;
        world.paths[0].error_count = errors;
        let by_t3 = PotentiallyFailed.on_error(path(0), false, &world.view());
        assert_eq!(by_t3.reason.value, f64::from(errors));
        assert_eq!(
            PotentiallyFailed.on_error(path(0), true, &world.view()),
            by_t3,
            "a HEARTBEAT counts like T3"
        );
        by_t3.choice
    }

    fn ns2() -> Profile {
        Profile::ns2_multipath()
    }

    fn rfc() -> Profile {
        Profile::rfc9260_multipath()
    }

    /// Creates potentially failed paths, each with its number of errors and the time of its failure in seconds.
    fn all_failing(paths: &[(u32, u64)]) -> World {
        let mut world = World::new(ns2(), paths.len());
        for (facts, &(errors, since)) in world.paths.iter_mut().zip(paths) {
            facts.state = Failing;
            facts.error_count = errors;
            facts.potentially_failed_since = Some(Time::from_nanos(since * 1_000_000_000));
        }
        world
    }

    fn promoted(world: &mut World) -> Option<PathId> {
        world.with(|view, context| PotentiallyFailed.promote(view, context)).map(|decision| decision.choice)
    }

    #[test]
    fn the_first_error_makes_a_path_potentially_failed_and_the_sixth_inactive() {
        for profile in [ns2(), rfc()] {
            assert_eq!(after(profile.clone(), 1, Active), Failing);
            assert_eq!([2, 5].map(|errors| after(profile.clone(), errors, Failing)), [Failing; 2]);
            assert_eq!(after(profile.clone(), 6, Failing), Inactive);
            assert_eq!(after(profile, 7, Inactive), Inactive);
        }
    }

    #[test]
    fn promoted_path_that_fails_again_stays_active_in_ns2_only() {
        assert_eq!([2, 3, 4, 5].map(|errors| after(ns2(), errors, Active)), [Active; 4]);
        assert_eq!([2, 3, 4, 5].map(|errors| after(rfc(), errors, Active)), [Failing; 4]);
        assert_eq!([ns2(), rfc()].map(|profile| after(profile, 6, Active)), [Inactive; 2]);
    }

    #[test]
    fn an_unconfirmed_path_does_not_become_potentially_failed() {
        for profile in [ns2(), rfc()] {
            assert_eq!(after(profile.clone(), 1, Unconfirmed), Unconfirmed);
            assert_eq!(after(profile, 6, Unconfirmed), Inactive);
        }
    }

    #[test]
    fn error_limit_takes_precedence_over_the_first_error() {
        assert_eq!(after(Profile { path_max_retrans: 0, ..ns2() }, 1, Active), Inactive);
    }

    #[test]
    fn unambiguous_ack_and_heartbeat_ack_reactivate_a_path() {
        let mut world = World::new(ns2(), 1);
        let alive = LivenessEffect { state: Active, clears_errors: true };
        for state in [Failing, Inactive] {
            world.paths[0].state = state;
            for proof in [LivenessProof::Unambiguous, LivenessProof::Heartbeat] {
                assert_eq!(PotentiallyFailed.on_proof(path(0), proof, &world.view()), alive);
            }
        }
    }

    #[test]
    fn ack_of_a_retransmitted_chunk_does_not_reactivate_a_path() {
        let mut world = World::new(ns2(), 1);
        for state in [Active, Failing, Inactive] {
            world.paths[0].state = state;
            let life = PotentiallyFailed.on_proof(path(0), LivenessProof::Ambiguous, &world.view());
            assert_eq!(life, LivenessEffect { state, clears_errors: false });
        }
    }

    #[test]
    fn a_path_that_is_not_in_good_health_is_probed_at_every_rto() {
        let mut world = World::new(ns2(), 1);
        assert_eq!(PotentiallyFailed.probing(path(0), &world.view()), Probing::WhenIdle);
        world.paths[0].state = Failing;
        world.paths[0].error_count = 1;
        assert_eq!(PotentiallyFailed.probing(path(0), &world.view()), Probing::EveryRto);
        world.paths[0].state = Active;
        assert_eq!(PotentiallyFailed.probing(path(0), &world.view()), Probing::EveryRto, "promoted");
    }

    #[test]
    fn the_path_with_fewest_errors_is_promoted_whenever_it_failed() {
        let mut world = all_failing(&[(3, 9), (1, 2), (2, 7)]);
        let decision =
            world.with(|view, context| PotentiallyFailed.promote(view, context)).expect("one is left");
        assert_eq!(decision.choice, path(1));
        assert_eq!((decision.reason.figure, decision.reason.value), ("errors", 1.0));
        assert_eq!(promoted(&mut all_failing(&[(1, 2), (3, 9), (2, 7)])), Some(path(0)));
    }

    #[test]
    fn of_equally_many_errors_the_latest_failure_is_promoted() {
        assert_eq!(promoted(&mut all_failing(&[(2, 4), (2, 6), (2, 5)])), Some(path(1)));
        assert_eq!(promoted(&mut all_failing(&[(2, 6), (2, 4), (3, 8)])), Some(path(0)));
    }

    #[test]
    fn equal_candidates_are_chosen_at_random() {
        let counts = all_failing(&[(2, 4), (2, 4)]).tally(|world| promoted(world).expect("one is left"));
        assert!(counts.iter().all(|count| (75..=125).contains(count)), "{counts:?} of 200");
    }

    #[test]
    fn only_potentially_failed_paths_are_candidates() {
        let mut world = all_failing(&[(5, 1), (4, 2), (3, 3), (2, 4)]);
        world.paths[2].state = Inactive;
        world.paths[3].state = Unconfirmed;
        assert_eq!(promoted(&mut world), Some(path(1)));
        world.paths[0].state = Inactive;
        world.paths[1].state = Inactive;
        assert_eq!(promoted(&mut world), None);
    }
}
