//! DB-CMT's D-DSP read as a scheduler: windows are filled in ascending order of the rate difference D, the bytes queued on a path
//! beyond its minimum delay, so that the path with the lightest load is first.

use anabranch_core::policy::{
    Context, Decision, PathFacts, Pick, Reason, Refusal, Refused, Scheduler, SendAsk, View, WaitFor,
};

use crate::preset::a_cmt::{RttSource, rate_difference};

/// Scheduler: fills windows in ascending order of D; if D is equal, the path with the lowest id is first.
#[derive(Clone, Debug)]
pub struct AscendingBacklog {
    /// Source of the current round-trip time in D.
    pub rtt: RttSource,
}

impl AscendingBacklog {
    fn difference(&self, path: &PathFacts) -> f64 {
        rate_difference(path.cwnd, &path.rtt, self.rtt)
    }
}

ignores_events! { AscendingBacklog }

impl Scheduler for AscendingBacklog {
    copied!(Scheduler);

    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let mut refused = Refused::new();
        let mut best: Option<(&PathFacts, f64)> = None;
        for path in view.paths {
            if let Some(why) = view.refusal(path.id) {
                refused.push((path.id, why));
                continue;
            }
            let difference = self.difference(path);
            match best {
                Some((_, least)) if least <= difference => refused.push((path.id, Refusal::Preference)),
                _ => {
                    refused.extend(best.map(|(other, _)| (other.id, Refusal::Preference)));
                    best = Some((path, difference));
                }
            }
        }
        let Some((path, difference)) = best else {
            let reason = Reason::rule("every window is full");
            return Decision::with_refused(Pick::Wait(WaitFor::Window), reason, refused);
        };
        let reason = Reason::figure("lightest load with room", "rate_difference_bytes", difference);
        Decision::with_refused(Pick::Path(path.id), reason, refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;

    const SMOOTHED: AscendingBacklog = AscendingBacklog { rtt: RttSource::Smoothed };

    /// Creates paths with windows of 4380 B, minimum round-trip times of 100 ms, and `smoothed` round-trip times in milliseconds.
    fn world(smoothed: &[u64]) -> World {
        let mut world = World::new(Profile::ns2_multipath(), smoothed.len());
        for (facts, &smoothed) in world.paths.iter_mut().zip(smoothed) {
            facts.rtt.smoothed = Some(Span::from_millis(smoothed));
            facts.rtt.min = Some(Span::from_millis(100));
        }
        world
    }

    #[test]
    fn the_lightest_load_is_filled_first() {
        let mut world = world(&[400, 125, 200]);
        let mut scheduler = SMOOTHED;
        let mut sent = Vec::new();
        while let Pick::Path(id) = world.pick(&mut scheduler).choice {
            world.paths[id.index()].in_flight += bytes(M);
            sent.push(id.index());
        }
        // D is 4380 x 0.75, 4380 x 0.2 and 4380 x 0.5.
        assert_eq!(sent, [1, 1, 1, 2, 2, 2, 0, 0, 0]);
    }

    #[test]
    fn the_reason_names_the_difference_and_the_others_are_refused() {
        let mut world = world(&[400, 125, 200, 100]);
        world.paths[3].state = PathState::PotentiallyFailed;
        let decision = world.pick(&mut AscendingBacklog { ..SMOOTHED });
        assert_eq!(decision.choice, Pick::Path(path(1)));
        assert_eq!(decision.reason.figure, "rate_difference_bytes");
        assert!((decision.reason.value - 876.0).abs() < 1e-9, "{:?}", decision.reason);
        let mut refused = decision.refused.to_vec();
        refused.sort_by_key(|&(id, _)| id);
        let preference = Refusal::Preference;
        assert_eq!(refused, [(path(0), preference), (path(2), preference), (path(3), Refusal::State)]);
    }

    #[test]
    fn of_equal_loads_and_of_paths_without_a_sample_the_lowest_id_comes_first() {
        let mut scheduler = SMOOTHED;
        assert_eq!(world(&[200, 200]).pick(&mut scheduler).choice, Pick::Path(path(0)));
        let mut world = world(&[200, 200, 200]);
        world.paths[2].rtt.smoothed = None;
        assert_eq!(
            world.pick(&mut scheduler).choice,
            Pick::Path(path(2)),
            "nothing is known to be held there"
        );
    }
}
