//! Loss detection by missing reports (RFC 9260 section 7.2.4), with CMT's split fast retransmit and delayed-ack rules.

use anabranch_core::MAX_PATHS;
use anabranch_core::policy::{
    Holes, LossDetection, LossTasks, Missing, MissingVerdict, PathSack, SackView, View,
};
use anabranch_core::time::Time;

use crate::definition::{Choice, Equation, Kind, Parameter, Value, Values};

pub(crate) const TRIGGER: Parameter = Parameter {
    name: "trigger",
    kind: Kind::Count { min: 1, max: 100 },
    unit: "missing reports",
    default: Value::Number(3),
    about: "reports after which a chunk is lost",
    source: "RFC 9260 section 7.2.4: 3; RFC 2960 and the papers' text: 4",
};

/// Answer shared by all papers whose text states four reports.
pub(crate) const TEXT_HAS_FOUR_REPORTS: Choice = Choice {
    question: "How many missing reports declare a chunk lost?",
    answer: "Three, although the text says four, as RFC 2960 does. The papers used ns-2, whose CMT agent counts three in \
             version 2.35; no paper mentions a change of this, and all schemes in a comparison count in the same way.",
    parameter: "trigger",
};

pub(crate) const fn sfr(default: bool) -> Parameter {
    Parameter::switch(
        "sfr",
        default,
        "split fast retransmit: only acks of a chunk's own path report it missing",
        "Iyengar 2006, SFR",
    )
}

pub(crate) const FAST_RETRANSMIT: Equation = Equation {
    name: "RFC 9260 section 7.2.4, fast retransmit",
    rule: "a SACK reports a chunk missing if its TSN < the highest TSN that the SACK newly acknowledges; after `trigger` \
           reports it is lost, once; afterwards only T3 declares it lost again",
    file: file!(),
};

pub(crate) const SFR: Equation = Equation {
    name: "SFR, split fast retransmit",
    rule: "a SACK reports a chunk that was last sent on path p missing if it newly acknowledges a chunk on p and the chunk's \
           TSN < the highest TSN newly acknowledged on p",
    file: file!(),
};

pub(crate) const DAC_SENDER: Equation = Equation {
    name: "DAC, sender",
    rule: "a SACK that reports a chunk missing counts as many reports as the packets that it acknowledges, if it acknowledges \
           chunks on one path only and none below the chunk's TSN there; else it counts one",
    file: file!(),
};

/// Policy that counts missing reports and declares a chunk lost at the trigger.
#[derive(Clone, Copy, Debug)]
pub struct MissingReports {
    /// Number of reports that make a chunk lost.
    pub trigger: u32,
    /// Split fast retransmit: only acknowledgements on the chunk's own path report it missing (Iyengar 2006, algorithm SFR).
    pub split: bool,
    /// Delayed acks for CMT: a SACK may count as many reports as it answers packets (algorithm DAC).
    pub delayed_acks: bool,
}

impl MissingReports {
    pub(crate) fn from_values(values: &Values) -> Self {
        MissingReports {
            trigger: values.number("trigger"),
            split: values.switch("sfr"),
            delayed_acks: values.switch("dac"),
        }
    }

    /// Returns `true` if this SACK reports the chunk missing: the highest-TSN-newly-acked rule, per path or for all paths.
    fn is_reported(&self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> bool {
        if self.split {
            let path = &sack.paths[chunk.path.index()];
            let highest = path.highest_gap_acked.unwrap_or(sack.cumulative);
            // Chunks that wait for a path, and copies, may be sent after later TSNs. Chunks sent before them do not report them
            // missing. Retransmitted chunks are not marked again and count reports as published.
            let overtaken =
                chunk.recovered_before || path.latest_sent_at.is_none_or(|at| chunk.sent_at <= at);
            return has_new_ack(path, view) && chunk.tsn < highest && overtaken;
        }
        //= docs/rfc9260.txt#section-7.2.4
        //# Miss indications SHOULD follow the Highest TSN Newly Acknowledged (HTNA) algorithm.
        let recovering = view.path(chunk.path).recovery_point.is_some();
        let all_count = view.profile.all_holes_count_in_recovery && recovering && sack.new_cumulative;
        all_count || chunk.tsn < sack.highest_newly_acked
    }

    /// Returns the number of reports that the SACK counts as (algorithm DAC, steps for mixed and single-path SACKs).
    fn reports(&self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> u32 {
        if !self.delayed_acks {
            return 1;
        }
        let paths = sack.paths.iter().filter(|p| has_new_ack(p, view)).count();
        // A path without acknowledged chunks counts as acknowledged below, because ns-2 keeps a zero there.
        let acked_below = sack.paths[chunk.path.index()].lowest_newly_acked.is_none_or(|t| t < chunk.tsn);
        match paths {
            1 if !acked_below => {
                let packets = u32::from(sack.flags);
                // A peer that does not count packets still reports once. ns-2's own timer SACKs count zero, and the zero is valid.
                if view.profile.timer_sack_counts_zero { packets } else { packets.max(1) }
            }
            _ => 1,
        }
    }
}

fn has_new_ack(path: &PathSack, view: &View<'_>) -> bool {
    path.new_gap_ack || (view.profile.cumulative_acks_count_for_missing && path.new_cumulative_ack)
}

ignores_events! { MissingReports }

impl LossDetection for MissingReports {
    copied!(LossDetection);

    /// Recovered chunks are never declared lost by reports again. On a split path only chunks sent later on it report a chunk.
    fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes {
        if !self.split {
            let all_count = view.profile.all_holes_count_in_recovery && sack.new_cumulative;
            let all_count = all_count && view.paths.iter().any(|path| path.recovery_point.is_some());
            let below = if all_count { u64::MAX } else { sack.highest_newly_acked };
            return Holes::NeverRecovered { below };
        }
        let mut bounds = [None; MAX_PATHS];
        for (bound, path) in bounds.iter_mut().zip(sack.paths).filter(|(_, path)| has_new_ack(path, view)) {
            let latest = path.latest_sent_at.unwrap_or(Time::from_nanos(u64::MAX));
            *bound = path.highest_gap_acked.map(|highest| (latest, highest));
        }
        Holes::SentBefore(bounds)
    }

    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict {
        if !self.is_reported(chunk, sack, view) {
            return MissingVerdict { reports: 0, lost: false };
        }
        let reports = self.reports(chunk, sack, view);
        //= docs/rfc9260.txt#section-7.2.4
        //# Whenever an endpoint receives a SACK chunk that indicates that some TSNs are missing, it SHOULD wait for two
        //# further miss indications (via subsequent SACK chunks for a total of three missing reports) on the same TSNs
        //# before taking action with regard to Fast Retransmit.
        let lost = chunk.reports + reports >= self.trigger && !chunk.recovered_before;
        MissingVerdict { reports, lost }
    }

    /// RFC 9260 section 6.3.3 E3: all outstanding chunks of the path are lost.
    fn timed_out(&mut self, _: &Missing, _: &View<'_>) -> bool {
        true
    }

    fn due(&mut self, _: &View<'_>) -> LossTasks {
        LossTasks::default()
    }

    fn overdue(&mut self, _: &Missing, _: &View<'_>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, path};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Time;
    use anabranch_core::units::WindowBytes;

    const PLAIN: MissingReports = MissingReports { trigger: 3, split: false, delayed_acks: false };
    const SFR: MissingReports = MissingReports { split: true, ..PLAIN };
    const DAC: MissingReports = MissingReports { delayed_acks: true, ..SFR };
    /// Path on which a SACK acknowledged nothing new.
    const NOTHING: PathSack = PathSack {
        new_gap_ack: false,
        new_cumulative_ack: false,
        lowest_newly_acked: None,
        highest_gap_acked: None,
        latest_sent_at: None,
    };

    /// Returns a hole at `tsn` whose latest transmission used path `index`.
    fn hole(tsn: u64, index: usize) -> Missing {
        Missing::sent_once(tsn, path(index), Time::ZERO)
    }

    /// Returns a path on which gap ack blocks newly acknowledged TSNs from `lowest` to `highest`.
    fn gap(lowest: u64, highest: u64) -> PathSack {
        PathSack {
            new_gap_ack: true,
            lowest_newly_acked: Some(lowest),
            highest_gap_acked: Some(highest),
            latest_sent_at: None,
            ..NOTHING
        }
    }

    /// Returns a path on which only the cumulative TSN newly acknowledged `tsn`.
    fn cumulative(tsn: u64) -> PathSack {
        PathSack { new_cumulative_ack: true, lowest_newly_acked: Some(tsn), ..NOTHING }
    }

    /// Returns a SACK with cumulative TSN 100 that answers two packets.
    fn sack(paths: &[PathSack]) -> SackView<'_> {
        let highest = paths.iter().filter_map(|p| p.highest_gap_acked).max().unwrap_or(100);
        SackView {
            paths,
            cumulative: 100,
            highest_newly_acked: highest,
            new_cumulative: false,
            flags: 2,
            a_rwnd: WindowBytes::new(65_536),
            peer_window: WindowBytes::new(65_536),
        }
    }

    fn verdict(policy: MissingReports, chunk: Missing, sack: &SackView<'_>, world: &World) -> MissingVerdict {
        let mut policy = policy;
        policy.missing(&chunk, sack, &world.view())
    }

    fn reports(policy: MissingReports, chunk: Missing, sack: &SackView<'_>, profile: Profile) -> u32 {
        verdict(policy, chunk, sack, &World::new(profile, 2)).reports
    }

    fn ns2() -> Profile {
        Profile::ns2_multipath()
    }

    fn rfc() -> Profile {
        Profile::rfc9260_multipath()
    }

    //= docs/rfc9260.txt#section-7.2.4
    //= type=test
    //# Miss indications SHOULD follow the Highest TSN Newly Acknowledged (HTNA) algorithm.
    #[test]
    fn without_split_only_holes_below_the_highest_new_ack_are_reported() {
        // An earlier SACK acknowledged TSN 106; this one newly acknowledged only 104.
        let paths = [gap(104, 104), NOTHING];
        for profile in [Profile::rfc9260(), rfc(), Profile::ns2(), ns2()] {
            let seen =
                [101, 103, 105].map(|tsn| reports(PLAIN, hole(tsn, 0), &sack(&paths), profile.clone()));
            assert_eq!(seen, [1, 1, 0]);
        }
    }

    #[test]
    fn without_split_an_ack_on_another_path_reports_a_hole() {
        assert_eq!(reports(PLAIN, hole(101, 1), &sack(&[gap(103, 103), NOTHING]), ns2()), 1);
    }

    #[test]
    fn without_split_the_highest_newly_acked_tsn_is_no_hole() {
        assert_eq!(reports(PLAIN, hole(104, 1), &sack(&[gap(104, 104), NOTHING]), ns2()), 0);
    }

    #[test]
    fn in_recovery_every_hole_counts_when_the_cumulative_tsn_advances() {
        let paths = [cumulative(100)];
        let advance = SackView { new_cumulative: true, ..sack(&paths) };
        let count = |profile: Profile, recovering: bool, sack: &SackView<'_>| {
            let mut world = World::new(profile, 1);
            world.paths[0].recovery_point = recovering.then_some(110);
            verdict(PLAIN, hole(105, 0), sack, &world).reports
        };
        // RFC 9260 section 7.2.4 and ns-2's base agent. In ns-2's CMT agent the rule is commented out.
        assert_eq!([Profile::rfc9260(), Profile::ns2()].map(|p| count(p, true, &advance)), [1, 1]);
        assert_eq!([rfc(), ns2()].map(|p| count(p, true, &advance)), [0, 0]);
        assert_eq!(count(Profile::rfc9260(), false, &advance), 0, "outside recovery");
        assert_eq!(count(Profile::rfc9260(), true, &sack(&paths)), 0, "without a new cumulative TSN");
    }

    #[test]
    fn a_split_path_is_reported_by_acks_of_its_own_alone() {
        let other = [NOTHING, gap(103, 110)];
        let own = [gap(103, 103), NOTHING];
        for profile in [rfc(), ns2()] {
            assert_eq!(reports(SFR, hole(101, 0), &sack(&other), profile.clone()), 0);
            assert_eq!(reports(SFR, hole(101, 0), &sack(&own), profile), 1);
        }
    }

    #[test]
    fn earlier_sent_chunks_do_not_report_a_chunk_missing_for_any_tsn() {
        let late = Missing { sent_at: Time::from_nanos(500), ..hole(101, 0) };
        let acked = |at| [PathSack { latest_sent_at: Some(Time::from_nanos(at)), ..gap(103, 104) }, NOTHING];
        let count = |at, chunk| reports(SFR, chunk, &sack(&acked(at)), ns2());
        assert_eq!([499, 500, 501].map(|at| count(at, late)), [0, 1, 1]);
        assert_eq!(count(499, Missing { transmissions: 2, ..late }), 0, "a copy of what is still in flight");
        let again = Missing { transmissions: 2, recovered_before: true, ..late };
        assert_eq!(count(499, again), 1, "ns-2 counts retransmitted chunks as before");
    }

    #[test]
    fn a_split_paths_holes_lie_below_its_own_highest_ack() {
        let paths = [gap(103, 103), gap(108, 108)];
        let seen = [(101, 0), (103, 0), (105, 0), (105, 1), (109, 1)];
        let seen = seen.map(|(tsn, index)| reports(SFR, hole(tsn, index), &sack(&paths), ns2()));
        assert_eq!(seen, [1, 0, 0, 1, 0]);
    }

    #[test]
    fn a_cumulative_ack_alone_reports_nothing_on_a_split_path() {
        // Every hole is above the cumulative TSN.
        for profile in [rfc(), ns2()] {
            assert_eq!(reports(SFR, hole(101, 0), &sack(&[cumulative(100), gap(105, 105)]), profile), 0);
        }
    }

    #[test]
    fn split_has_no_rule_of_its_own_for_recovery() {
        let mut world = World::new(Profile::rfc9260(), 1);
        world.paths[0].recovery_point = Some(110);
        let paths = [cumulative(100)];
        let advance = SackView { new_cumulative: true, ..sack(&paths) };
        assert_eq!(verdict(SFR, hole(105, 0), &advance, &world).reports, 0);
    }

    #[test]
    fn delayed_sack_of_one_path_counts_all_its_packets() {
        let paths = [gap(103, 104), NOTHING];
        for profile in [rfc(), ns2()] {
            let count =
                |flags| reports(DAC, hole(101, 0), &SackView { flags, ..sack(&paths) }, profile.clone());
            assert_eq!([1, 2, 3, 255].map(count), [1, 2, 3, 255]);
            assert_eq!(reports(SFR, hole(101, 0), &sack(&paths), profile.clone()), 1, "without the rule");
        }
    }

    #[test]
    fn a_mixed_sack_counts_once() {
        for profile in [rfc(), ns2()] {
            assert_eq!(reports(DAC, hole(101, 0), &sack(&[gap(103, 103), gap(104, 104)]), profile), 1);
        }
    }

    #[test]
    fn acks_on_both_sides_of_a_hole_count_once() {
        let around = [gap(101, 104), NOTHING];
        assert_eq!(reports(DAC, hole(102, 0), &sack(&around), ns2()), 1);
        // The lower TSN may be acknowledged by the cumulative TSN.
        let below =
            [PathSack { lowest_newly_acked: Some(99), new_cumulative_ack: true, ..gap(104, 104) }, NOTHING];
        assert_eq!(reports(DAC, hole(102, 0), &sack(&below), ns2()), 1);
        // Both are above the hole, so both packets of the SACK followed it.
        assert_eq!(reports(DAC, hole(100, 0), &sack(&around), ns2()), 2);
    }

    #[test]
    fn cumulative_ack_on_another_path_mixes_a_sack_in_the_standard_only() {
        let paths = [gap(103, 104), cumulative(100)];
        assert_eq!(reports(DAC, hole(101, 0), &sack(&paths), rfc()), 1);
        assert_eq!(reports(DAC, hole(101, 0), &sack(&paths), ns2()), 2);
    }

    #[test]
    fn sack_with_zero_flags_counts_once_in_the_standard_and_not_in_ns2() {
        let paths = [gap(103, 103), NOTHING];
        let silent = SackView { flags: 0, ..sack(&paths) };
        assert_eq!(reports(DAC, hole(101, 0), &silent, ns2()), 0);
        assert_eq!(reports(DAC, hole(101, 0), &silent, rfc()), 1);
        // A mixed SACK counts in both.
        let mixed = [gap(103, 103), gap(104, 104)];
        assert_eq!(reports(DAC, hole(101, 0), &SackView { flags: 0, ..sack(&mixed) }, ns2()), 1);
    }

    #[test]
    fn the_report_that_reaches_the_trigger_makes_a_chunk_lost() {
        let world = World::new(ns2(), 2);
        let paths = [gap(103, 104), NOTHING];
        for trigger in [1, 3, 4] {
            let policy = MissingReports { trigger, ..SFR };
            let lost = |before| {
                verdict(policy, Missing { reports: before, ..hole(101, 0) }, &sack(&paths), &world).lost
            };
            let first = (0..10).find(|&before| lost(before));
            assert_eq!(first, Some(trigger - 1));
            assert!(lost(trigger), "and every one after it");
        }
    }

    #[test]
    fn reports_that_step_over_the_trigger_make_a_chunk_lost_too() {
        let world = World::new(ns2(), 2);
        let paths = [gap(103, 104), NOTHING];
        let count = |before| verdict(DAC, Missing { reports: before, ..hole(101, 0) }, &sack(&paths), &world);
        assert_eq!(count(0), MissingVerdict { reports: 2, lost: false });
        assert_eq!(count(1), MissingVerdict { reports: 2, lost: true });
        assert_eq!(count(2), MissingVerdict { reports: 2, lost: true });
    }

    #[test]
    fn a_chunk_that_was_recovered_before_is_reported_but_never_lost_again() {
        let world = World::new(ns2(), 2);
        let chunk = Missing { reports: 50, recovered_before: true, transmissions: 2, ..hole(101, 0) };
        let paths = [gap(103, 104), NOTHING];
        for (policy, added) in [(PLAIN, 1), (SFR, 1), (DAC, 2)] {
            let expected = MissingVerdict { reports: added, lost: false };
            assert_eq!(verdict(policy, chunk, &sack(&paths), &world), expected);
        }
    }

    #[test]
    fn chunk_unreported_by_this_sack_is_not_lost_despite_its_count() {
        let world = World::new(ns2(), 2);
        let chunk = Missing { reports: 50, ..hole(105, 0) };
        let quiet = MissingVerdict { reports: 0, lost: false };
        assert_eq!(verdict(SFR, chunk, &sack(&[gap(103, 104), NOTHING]), &world), quiet);
    }

    //= docs/rfc9260.txt#section-6.3.3
    //= type=test
    //# Any DATA chunks that were sent to the address for which the T3-rtx timer expired but did not fit in an SCTP packet
    //# of size smaller than or equal to the PMTU (rule E3 above) SHOULD be marked for retransmission and sent as soon as
    //# cwnd allows (normally, when a SACK chunk arrives).
    #[test]
    fn a_time_out_marks_every_chunk_of_its_path() {
        let world = World::new(ns2(), 2);
        let mut policy = DAC;
        assert!(policy.timed_out(&hole(101, 0), &world.view()));
        let again = Missing { recovered_before: true, transmissions: 4, ..hole(102, 0) };
        assert!(policy.timed_out(&again, &world.view()));
    }
}
