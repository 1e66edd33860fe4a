//! A loss policy names the gaps that it judges. Verdicts on all other gaps change nothing.

use std::sync::Arc;

use anabranch_core::policy::{
    Context, Event, Holes, LossDetection, LossTasks, Missing, MissingVerdict, Policies, SackView, Scheme,
    Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_schemes::registry::{COMPONENTS, PRESETS};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;

/// A policy that judges every gap, in addition to those that it would name.
struct EveryHole(Box<dyn LossDetection>);

impl Slot for EveryHole {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.0.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.0.deadline()
    }
}

impl LossDetection for EveryHole {
    fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes {
        self.0.holes(sack, view);
        Holes::All
    }

    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict {
        self.0.missing(chunk, sack, view)
    }

    fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.0.timed_out(chunk, view)
    }

    fn due(&mut self, view: &View<'_>) -> LossTasks {
        self.0.due(view)
    }

    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.0.overdue(chunk, view)
    }
}

struct JudgingEveryHole(Arc<dyn Scheme>);

impl Scheme for JudgingEveryHole {
    fn policies(&self) -> Policies {
        let policies = self.0.policies();
        Policies { loss: Box::new(EveryHole(policies.loss)), ..policies }
    }

    fn is_multipath(&self) -> bool {
        self.0.is_multipath()
    }

    fn profile(&self, row: Profile) -> Profile {
        self.0.profile(row)
    }
}

/// Transfers over three unequal paths that lose, duplicate and reorder packets, one of which fails for some time. Returns the hash
/// of all packets, and the number of chunks declared lost by reports or by time.
fn life(scheme: &str, profile: &str, seed: u64, every_hole: bool) -> (u64, u64) {
    let mut setup = Setup { seed, ..Setup::new(3, scheme, profile) };
    if every_hole {
        for side in &mut setup.sides {
            side.scheme = Arc::new(JudgingEveryHole(Arc::clone(&side.scheme)));
        }
    }
    let mut duo = Duo::connected(setup);
    for (pair, delay) in [5, 40, 120].into_iter().enumerate() {
        let link = duo.link(pair);
        (link.delay, link.loss, link.duplicate, link.reorder) = (Span::from_millis(delay), 60, 20, 50);
    }
    for round in 0..4 {
        duo.cut(1, round == 2);
        duo.send_all(Side::A, 1_200, 60);
        duo.run(Span::from_secs(4));
    }
    (duo.hash, duo.nodes[0].association().statistics().fast_retransmitted_chunks)
}

#[test]
fn holes_that_a_policy_does_not_name_make_no_difference() {
    let every = [("rfc9260", 1), ("ns2", 2), ("net", 3)];
    let presets = PRESETS.iter().map(|preset| (preset.name.to_owned(), &every[..]));
    let base = PRESETS.iter().find(|preset| preset.name == "cmt").expect("a preset");
    let added =
        COMPONENTS.iter().filter(|one| one.fits(base)).map(|one| (format!("cmt+{}", one.name), &every[2..]));
    let single = [("sctp+rack".to_owned(), &every[..])];
    for (scheme, profiles) in presets.chain(added).chain(single) {
        for &(profile, seed) in profiles {
            let (named, lost) = life(&scheme, profile, seed, false);
            assert_eq!((named, lost), life(&scheme, profile, seed, true), "{scheme} under {profile}");
            assert!(lost > 0, "{scheme} under {profile} lost nothing");
        }
    }
}
