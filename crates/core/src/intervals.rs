//! Lists of disjoint inclusive intervals of TSNs, in order, with at least one number between any two.

/// Interval of TSNs: the first and the last one.
pub(crate) type Interval = (u64, u64);

/// Joins intervals that overlap or touch in a list that is ordered by first TSNs.
pub(crate) fn join(list: &mut Vec<Interval>) {
    list.dedup_by(|next, kept| {
        let joins = next.0 <= kept.1 + 1;
        if joins {
            kept.1 = kept.1.max(next.1);
        }
        joins
    });
}

/// Adds an interval, and joins it with those that it overlaps or touches.
pub(crate) fn insert(list: &mut Vec<Interval>, (start, end): Interval) {
    let from = list.partition_point(|&(_, last)| last + 1 < start);
    let joined = list[from..].partition_point(|&(first, _)| first <= end + 1);
    match list[from..][..joined] {
        [] => list.insert(from, (start, end)),
        [one] => list[from] = (start.min(one.0), end.max(one.1)),
        [first, .., last] => {
            list[from] = (start.min(first.0), end.max(last.1));
            list.drain(from + 1..from + joined);
        }
    }
}

/// Removes intervals that lie wholly at or below `tsn`.
pub(crate) fn forget_up_to(list: &mut Vec<Interval>, tsn: u64) {
    list.drain(..list.len() - above(list, tsn).len());
}

/// Returns `true` if one interval contains all of `start..=end`.
pub(crate) fn holds(list: &[Interval], start: u64, end: u64) -> bool {
    let at = list.partition_point(|&(first, _)| first <= start);
    at > 0 && list[at - 1].1 >= end
}

/// Returns the same for ascending queries: the search starts at index `at`, which is advanced.
pub(crate) fn holds_from(list: &[Interval], at: &mut usize, (start, end): Interval) -> bool {
    *at += list[*at..].iter().take_while(|&&(_, last)| last < start).count();
    list.get(*at).is_some_and(|&(first, last)| first <= start && end <= last)
}

/// Returns the number of equal intervals at the start of two lists.
pub(crate) fn common_start(one: &[Interval], other: &[Interval]) -> usize {
    one.iter().zip(other).take_while(|(first, second)| first == second).count()
}

/// Number of intervals that are compared one by one before a binary search.
const FEW: usize = 8;

/// Returns the intervals that end above `tsn`. Mostly few lie below it, because callers forget those that have been passed.
pub(crate) fn above(list: &[Interval], tsn: u64) -> &[Interval] {
    let passed = list.iter().take(FEW).take_while(|&&(_, end)| end <= tsn).count();
    let rest = &list[passed..];
    if passed < FEW { rest } else { &rest[rest.partition_point(|&(_, end)| end <= tsn)..] }
}

/// Returns `true` if `outer` contains all numbers of `list` above `tsn`.
pub(crate) fn hold_above(outer: &[Interval], list: &[Interval], tsn: u64) -> bool {
    let mut outer = outer.iter().copied().peekable();
    list.iter().filter(|&&(_, end)| end > tsn).all(|&(start, end)| {
        let start = start.max(tsn + 1);
        while outer.next_if(|&(_, last)| last < start).is_some() {}
        outer.peek().is_some_and(|&(first, last)| first <= start && end <= last)
    })
}

/// Replaces `all` by the union of two lists.
pub(crate) fn unite(one: &[Interval], other: &[Interval], all: &mut Vec<Interval>) {
    all.clear();
    let (mut one, mut other) = (one.iter().copied().peekable(), other.iter().copied().peekable());
    loop {
        let next = match (one.peek(), other.peek()) {
            (Some(first), Some(second)) if first <= second => one.next(),
            (Some(_), None) => one.next(),
            (_, Some(_)) => other.next(),
            (None, None) => return,
        };
        let Some((start, end)) = next else { return };
        match all.last_mut() {
            Some(last) if start <= last.1 + 1 => last.1 = last.1.max(end),
            _ => all.push((start, end)),
        }
    }
}

/// Appends the numbers of `list` without those of `known` to `news`.
pub(crate) fn subtract(list: &[Interval], known: &[Interval], news: &mut Vec<Interval>) {
    let mut known = known.iter().copied().peekable();
    for &(mut start, end) in list {
        while known.next_if(|&(_, last)| last < start).is_some() {}
        while let Some(&(first, last)) = known.peek().filter(|&&(first, _)| first <= end) {
            if start < first {
                news.push((start, first - 1));
            }
            start = last + 1;
            // An interval that reaches beyond this one may contain a part of the next one too.
            if last >= end {
                break;
            }
            known.next();
        }
        if start <= end {
            news.push((start, end));
        }
    }
}

/// Returns the parts of `start..=end` outside of all intervals, in order.
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

    /// Returns every list of disjoint intervals of the numbers from 1 to 8.
    fn lists() -> impl Iterator<Item = Vec<Interval>> {
        (0..256_u32).map(|bits| {
            let numbers = (1..=8_u64).filter(|n| bits >> (n - 1) & 1 == 1);
            let mut list = numbers.map(|n| (n, n)).collect();
            join(&mut list);
            list
        })
    }

    fn has(list: &[Interval], n: u64) -> bool {
        holds(list, n, n)
    }

    fn is_apart(list: &[Interval]) -> bool {
        list.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0)
    }

    #[test]
    fn an_interval_that_is_added_leaves_those_that_it_does_not_touch() {
        for list in lists() {
            for start in 1..=9 {
                for end in start..=9 {
                    let mut all = list.clone();
                    insert(&mut all, (start, end));
                    let expected = |n| has(&list, n) || (start..=end).contains(&n);
                    assert!((1..=10).all(|n| has(&all, n) == expected(n)), "{list:?} {start} {end}: {all:?}");
                    assert!(is_apart(&all), "{all:?}");
                }
            }
        }
    }

    #[test]
    fn ordered_lookups_equal_single_lookups() {
        for list in lists() {
            for other in lists() {
                let mut at = 0;
                for interval in other {
                    let found = holds_from(&list, &mut at, interval);
                    assert_eq!(found, holds(&list, interval.0, interval.1), "{list:?} {interval:?}");
                }
            }
        }
    }

    #[test]
    fn two_lists_are_compared_subtracted_and_united_as_their_numbers_are() {
        let mut all = vec![(7, 7)];
        for one in lists() {
            for other in lists() {
                for tsn in [0, 3, 8] {
                    let expected = (tsn + 1..=8).all(|n| has(&one, n) || !has(&other, n));
                    let list = above(&other, tsn);
                    let same = common_start(&one, list);
                    assert_eq!(hold_above(&one, &other, tsn), expected, "{one:?} {other:?} {tsn}");
                    assert_eq!(
                        hold_above(&one[same..], &list[same..], tsn),
                        expected,
                        "{one:?} {other:?} {tsn}"
                    );
                }
                let same = common_start(&one, &other);
                all.clear();
                subtract(&one[same..], &other[same..], &mut all);
                assert!((1..=8).all(|n| has(&all, n) == (has(&one, n) && !has(&other, n))), "{all:?}");
                all.clear();
                subtract(&one, &other, &mut all);
                assert!((1..=8).all(|n| has(&all, n) == (has(&one, n) && !has(&other, n))), "{all:?}");
                unite(&one, &other, &mut all);
                assert!((1..=8).all(|n| has(&all, n) == (has(&one, n) || has(&other, n))), "{all:?}");
                assert!(is_apart(&all), "{all:?}");
            }
        }
    }

    #[test]
    fn uncovered_ranges_exclude_covered_ones() {
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
