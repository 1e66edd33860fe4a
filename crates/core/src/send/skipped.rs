//! Content of a FORWARD-TSN or I-FORWARD-TSN: the TSN to which the receiver moves on, and the messages that it skips (RFC 3758
//! sections 3.2 and 3.5, RFC 8260 section 2.3.1).

use std::collections::VecDeque;

/// Abandoned message that has TSNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// First and last outstanding TSN of the message. With I-DATA, TSNs of other messages may lie between them.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Entry for the message; `None` for an unordered one in DATA.
    pub(crate) entry: Option<SkippedNumber>,
}

/// Message that a stream skips: an entry of a FORWARD-TSN or I-FORWARD-TSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SkippedNumber {
    pub(crate) stream: u16,
    pub(crate) unordered: bool,
    /// Message identifier. Its low bits are the SSN in DATA.
    pub(crate) number: u32,
}

impl SkippedNumber {
    /// Returns the key of the entry, which a list contains once.
    fn key(self) -> (u16, bool) {
        (self.stream, self.unordered)
    }
}

/// Abandoned messages beyond the cumulative TSN, in TSN order.
#[derive(Clone, Debug, Default)]
pub(crate) struct SkippedMessages {
    messages: VecDeque<Skipped>,
}

impl SkippedMessages {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn insert(&mut self, skipped: Skipped) {
        let at = self.messages.partition_point(|other| other.first < skipped.first);
        self.messages.insert(at, skipped);
    }

    pub(crate) fn forget_up_to(&mut self, cumulative: u64) {
        while self.messages.front().is_some_and(|skipped| skipped.last <= cumulative) {
            self.messages.pop_front();
        }
    }

    /// Fills `streams` with the streams that skip messages up to `point`, each with its last number. Returns the TSN up to which the
    /// list is complete. The list has at most `most` entries; the next FORWARD-TSN names the others.
    ///
    /// A message that begins at or below `point` is named, although some of its TSNs may be above: those between may belong to
    /// messages of I-DATA that are not abandoned, and the receiver cannot reach them before.
    pub(crate) fn streams_up_to(
        &self,
        point: u64,
        most: usize,
        streams: &mut Vec<SkippedNumber>,
    ) -> Option<u64> {
        streams.clear();
        let mut any = false;
        for skipped in self.messages.iter().take_while(|skipped| skipped.first <= point) {
            if let Some(entry) = skipped.entry {
                match streams.binary_search_by_key(&entry.key(), |other| other.key()) {
                    // RFC 3758 section 3.2: one entry for each stream, with the largest number. Numbers ascend with TSNs.
                    Ok(at) => streams[at] = entry,
                    Err(_) if streams.len() >= most => return any.then(|| skipped.first - 1),
                    Err(at) => streams.insert(at, entry),
                }
            }
            any = true;
        }
        any.then_some(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry((stream, ssn): (u16, u16)) -> SkippedNumber {
        SkippedNumber { stream, unordered: false, number: u32::from(ssn) }
    }

    fn list(messages: &[(u64, Option<(u16, u16)>)]) -> SkippedMessages {
        let mut list = SkippedMessages::default();
        messages.iter().for_each(|&(last, ordered)| {
            list.insert(Skipped { first: last, last, entry: ordered.map(entry) });
        });
        list
    }

    #[test]
    fn each_stream_is_named_once_with_its_last_ssn() {
        let list = list(&[
            (9, Some((1, 5))),
            (4, Some((2, u16::MAX))),
            (6, Some((2, 0))),
            (7, None),
            (12, Some((3, 3))),
        ]);
        let mut streams = Vec::new();
        assert_eq!(list.streams_up_to(10, 9, &mut streams), Some(10));
        assert_eq!(streams, [(1, 5), (2, 0)].map(entry));
    }

    #[test]
    fn a_list_that_is_full_ends_before_the_message_that_does_not_fit() {
        let list = list(&[(4, Some((2, 0))), (6, Some((1, 0))), (8, Some((2, 1))), (9, Some((0, 0)))]);
        let mut streams = Vec::new();
        assert_eq!(list.streams_up_to(9, 2, &mut streams), Some(8));
        assert_eq!(streams, [(1, 0), (2, 1)].map(entry));
        assert_eq!(list.streams_up_to(9, 0, &mut streams), None);
    }

    #[test]
    fn streams_below_the_cumulative_tsn_are_not_listed_again() {
        let mut list = list(&[(4, Some((2, 0))), (6, Some((1, 0)))]);
        list.forget_up_to(4);
        let mut streams = Vec::new();
        assert_eq!(list.streams_up_to(6, 9, &mut streams), Some(6));
        assert_eq!(streams, [(1, 0)].map(entry));
        list.forget_up_to(6);
        assert!(list.is_empty());
    }
}
