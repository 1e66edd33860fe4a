//! Lists of disjoint inclusive intervals of TSNs, in order, with at least one number between any two.

/// An interval: its first and its last TSN.
pub(crate) type Interval = (u64, u64);

/// Joins what overlaps or touches in a list that is in order by first TSNs.
pub(crate) fn join(list: &mut Vec<Interval>) {
    list.dedup_by(|next, kept| {
        let joins = next.0 <= kept.1 + 1;
        if joins {
            kept.1 = kept.1.max(next.1);
        }
        joins
    });
}

/// Adds an interval.
pub(crate) fn insert(list: &mut Vec<Interval>, interval: Interval) {
    let at = list.partition_point(|&(start, _)| start < interval.0);
    list.insert(at, interval);
    join(list);
}

/// Forgets what lies wholly at or below `tsn`.
pub(crate) fn forget_up_to(list: &mut Vec<Interval>, tsn: u64) {
    list.retain(|&(_, end)| end > tsn);
}

/// Whether one interval holds all of `start..=end`.
pub(crate) fn holds(list: &[Interval], start: u64, end: u64) -> bool {
    let at = list.partition_point(|&(first, _)| first <= start);
    at > 0 && list[at - 1].1 >= end
}

/// The parts of `start..=end` that no interval holds, in order.
pub(crate) fn uncovered(list: &[Interval], start: u64, end: u64) -> impl Iterator<Item = Interval> {
    let from = list.partition_point(|&(_, last)| last < start);
    let mut at = start;
    let overlapping = list[from..].iter().copied().take_while(move |&(first, _)| first <= end);
    overlapping.chain([(end + 1, end + 1)]).filter_map(move |(first, last)| {
        let gap = (at, first.saturating_sub(1));
        at = at.max(last + 1);
        (gap.0 <= gap.1).then_some(gap)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_and_touching_intervals_become_one() {
        let mut list = vec![(3, 4), (5, 6), (6, 9), (11, 12)];
        join(&mut list);
        assert_eq!(list, [(3, 9), (11, 12)]);
        insert(&mut list, (10, 10));
        assert_eq!(list, [(3, 12)]);
        insert(&mut list, (1, 1));
        insert(&mut list, (20, 30));
        forget_up_to(&mut list, 1);
        assert_eq!(list, [(3, 12), (20, 30)]);
        forget_up_to(&mut list, 11);
        assert_eq!(list, [(3, 12), (20, 30)], "what reaches beyond stays whole");
    }

    #[test]
    fn a_range_is_held_exactly_if_one_interval_holds_all_of_it() {
        let list = [(3, 5), (8, 8)];
        let hit: Vec<u64> = (1..10).filter(|&t| holds(&list, t, t)).collect();
        assert_eq!(hit, [3, 4, 5, 8]);
        assert!(holds(&list, 3, 5) && !holds(&list, 3, 8) && !holds(&[], 1, 1));
    }

    #[test]
    fn what_is_not_covered_is_found_without_what_is() {
        let list = [(3, 5), (8, 8), (12, 20)];
        for start in 1..23 {
            for end in start..23 {
                let parts: Vec<u64> = uncovered(&list, start, end).flat_map(|(a, b)| a..=b).collect();
                let expected: Vec<u64> = (start..=end).filter(|&t| !holds(&list, t, t)).collect();
                assert_eq!(parts, expected, "{start}..={end}");
            }
        }
    }
}
