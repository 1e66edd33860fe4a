//! Limits of concurrent transfers, in total and per address, and the choice of the one that gives way.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anabranch_net::Source;

use crate::moment::Moment;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of transfers. The same number of associations may be present without having begun one.
    pub(super) most: usize,
    /// Maximum number of transfers of a site, and of its associations that have not begun one.
    pub(super) most_per_site: usize,
    /// Time without progress after which a transfer has to give way to another one.
    pub(super) give_way_after: Duration,
}

/// Stage of an association.
#[derive(Clone, Debug)]
enum Stage {
    /// The peer has sent no request.
    Greeting,
    /// The transfer is running, and made progress last at this time.
    Running(Moment),
    /// The transfer has to give way to another one, and is ending.
    Leaving,
}

#[derive(Debug)]
pub(super) struct Slots {
    limits: Limits,
    slots: BTreeMap<u64, (Source, Stage)>,
    next: u64,
}

/// Decision on the start of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// The transfer may begin.
    Runs,
    /// The transfer may begin, and the transfer with this number has to end.
    RunsFor(u64),
    /// Every slot is taken.
    Full,
}

impl Slots {
    pub(super) fn new(limits: Limits) -> Self {
        Slots { limits, slots: BTreeMap::new(), next: 0 }
    }

    /// Registers an association that has sent no request. Returns its number if there is room for it.
    pub(super) fn enter(&mut self, site: Source) -> Option<u64> {
        let greeting = |stage: &Stage| matches!(stage, Stage::Greeting);
        let is_full = self.count(greeting, None) >= self.limits.most
            || self.count(greeting, Some(site)) >= self.limits.most_per_site;
        if is_full {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.slots.insert(number, (site, Stage::Greeting));
        Some(number)
    }

    /// Lets an association begin its transfer. If no slot is free, the transfer without progress for the longest time gives way.
    pub(super) fn begin(&mut self, number: u64, progress: Moment, now: Instant) -> Begin {
        let Some((site, _)) = self.slots.get(&number) else { return Begin::Full };
        let site = *site;
        let running = |stage: &Stage| matches!(stage, Stage::Running(_));
        let rivals = if self.count(running, Some(site)) >= self.limits.most_per_site {
            Some(Some(site))
        } else if self.count(running, None) >= self.limits.most {
            Some(None)
        } else {
            None
        };
        let gives_way = match rivals.map(|site| self.longest_without_progress(site, now)) {
            None => None,
            Some(Some(idle)) => Some(idle),
            Some(None) => return Begin::Full,
        };
        if let Some((_, stage)) = gives_way.and_then(|idle| self.slots.get_mut(&idle)) {
            *stage = Stage::Leaving;
        }
        self.slots.insert(number, (site, Stage::Running(progress)));
        gives_way.map_or(Begin::Runs, Begin::RunsFor)
    }

    pub(super) fn leave(&mut self, number: u64) {
        self.slots.remove(&number);
    }

    /// Returns the number of present associations, with or without a transfer.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of transfers that may still begin.
    pub(super) fn free(&self) -> usize {
        let running = self.count(|stage| !matches!(stage, Stage::Greeting), None);
        self.limits.most.saturating_sub(running)
    }

    fn count(&self, is_counted: impl Fn(&Stage) -> bool, of: Option<Source>) -> usize {
        let is_of = |site: &Source| of.is_none_or(|of| of == *site);
        self.slots.values().filter(|(site, stage)| is_of(site) && is_counted(stage)).count()
    }

    fn longest_without_progress(&self, of: Option<Source>, now: Instant) -> Option<u64> {
        let idle = self.slots.iter().filter_map(|(number, (site, stage))| match stage {
            Stage::Running(progress) if of.is_none_or(|of| of == *site) => {
                Some((now.saturating_duration_since(progress.latest()), *number))
            }
            _ => None,
        });
        let (idle, number) = idle.max_by_key(|(idle, number)| (*idle, Reverse(*number)))?;
        (idle >= self.limits.give_way_after).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const IDLE: Duration = Duration::from_secs(30);

    fn site(text: &str) -> Source {
        text.parse::<IpAddr>().expect("an address").into()
    }

    fn slots(most: usize, most_per_site: usize) -> Slots {
        Slots::new(Limits { most, most_per_site, give_way_after: IDLE })
    }

    /// Enters an association from `address`, which begins a transfer `seconds` after the start.
    fn begin(slots: &mut Slots, start: Instant, seconds: u64, address: &str) -> (u64, Begin) {
        let number = slots.enter(site(address)).expect("room to say something");
        let now = start + Duration::from_secs(seconds);
        let begun = slots.begin(number, Moment::at(now), now);
        if begun == Begin::Full {
            slots.leave(number);
        }
        (number, begun)
    }

    #[test]
    fn one_site_cannot_take_every_place() {
        let (mut slots, start) = (slots(4, 2), Instant::now());
        for (address, begun) in [
            ("192.0.2.1", Begin::Runs),
            ("192.0.2.1", Begin::Runs),
            ("192.0.2.1", Begin::Full),
            ("192.0.2.2", Begin::Runs),
            ("192.0.2.3", Begin::Runs),
            ("192.0.2.4", Begin::Full),
        ] {
            assert_eq!(begin(&mut slots, start, 0, address).1, begun, "{address}");
        }
        assert_eq!(slots.free(), 0);
    }

    #[test]
    fn silent_associations_are_limited_too() {
        let mut slots = slots(3, 2);
        let silent: Vec<_> = (0..3).map(|_| slots.enter(site("192.0.2.1"))).collect();
        assert_eq!(silent[2], None);
        assert!(slots.enter(site("192.0.2.2")).is_some() && slots.enter(site("192.0.2.3")).is_none());
        slots.leave(silent[0].expect("entered"));
        assert!(slots.enter(site("192.0.2.3")).is_some());
        assert_eq!(slots.free(), 3, "none of them holds a transfer's place");
    }

    #[test]
    fn transfer_without_progress_for_longest_is_replaced() {
        let (mut slots, start) = (slots(3, 2), Instant::now());
        let first = begin(&mut slots, start, 0, "192.0.2.1").0;
        let second = begin(&mut slots, start, 1, "192.0.2.1").0;
        let third = begin(&mut slots, start, 2, "192.0.2.2").0;
        assert_eq!(
            begin(&mut slots, start, 29, "192.0.2.3").1,
            Begin::Full,
            "no connection was idle for long enough"
        );
        assert_eq!(begin(&mut slots, start, 30, "192.0.2.3").1, Begin::RunsFor(first));
        // A transfer that is leaving is not chosen again, and does not count.
        assert_eq!(begin(&mut slots, start, 31, "192.0.2.3").1, Begin::RunsFor(second));
        assert_eq!(
            begin(&mut slots, start, 40, "192.0.2.3").1,
            Begin::Full,
            "only its own site gives way, and that is busy"
        );
        assert_eq!(begin(&mut slots, start, 40, "192.0.2.4").1, Begin::RunsFor(third));
    }

    #[test]
    fn progress_keeps_a_slot() {
        let (mut slots, start) = (slots(1, 1), Instant::now());
        let number = slots.enter(site("192.0.2.1")).expect("room");
        let progress = Moment::at(start + Duration::from_secs(20));
        slots.begin(number, progress, start);
        assert_eq!(begin(&mut slots, start, 30, "192.0.2.2").1, Begin::Full);
        assert_eq!(begin(&mut slots, start, 60, "192.0.2.2").1, Begin::RunsFor(number));
    }

    #[test]
    fn idle_transfer_continues_while_its_slot_is_not_needed() {
        let (mut slots, start) = (slots(2, 2), Instant::now());
        begin(&mut slots, start, 0, "192.0.2.1");
        assert_eq!(begin(&mut slots, start, 100_000, "192.0.2.1").1, Begin::Runs);
    }
}
