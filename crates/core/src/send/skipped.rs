//! Content of a FORWARD-TSN: the TSN to which the receiver moves on, and the ordered messages that it skips (RFC 3758 sections 3.2
//! and 3.5).

use std::collections::VecDeque;

/// Abandoned message that has TSNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Last TSN of the message.
    pub(crate) last: u64,
    /// Stream and SSN of an ordered message.
    pub(crate) ordered: Option<(u16, u16)>,
}

/// Abandoned messages beyond the cumulative TSN, in TSN order.
#[derive(Debug, Default)]
pub(crate) struct SkippedMessages {
    messages: VecDeque<Skipped>,
}

impl SkippedMessages {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn insert(&mut self, skipped: Skipped) {
        let at = self.messages.partition_point(|other| other.last < skipped.last);
        self.messages.insert(at, skipped);
    }

    pub(crate) fn forget_up_to(&mut self, cumulative: u64) {
        while self.messages.front().is_some_and(|skipped| skipped.last <= cumulative) {
            self.messages.pop_front();
        }
    }

    /// Fills `streams` with the streams that skip messages up to `point`, each with its last SSN. Returns the TSN up to which the
    /// list is complete. The list has at most `most` entries; the next FORWARD-TSN names the others.
    pub(crate) fn streams_up_to(
        &self,
        point: u64,
        most: usize,
        streams: &mut Vec<(u16, u16)>,
    ) -> Option<u64> {
        streams.clear();
        let mut complete = None;
        for skipped in self.messages.iter().take_while(|skipped| skipped.last <= point) {
            if let Some((stream, ssn)) = skipped.ordered {
                match streams.binary_search_by_key(&stream, |&(other, _)| other) {
                    // RFC 3758 section 3.2: one entry for each stream, with the largest SSN. SSNs ascend with TSNs.
                    Ok(at) => streams[at].1 = ssn,
                    Err(_) if streams.len() >= most => return complete,
                    Err(at) => streams.insert(at, (stream, ssn)),
                }
            }
            complete = Some(skipped.last);
        }
        complete.map(|_| point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(messages: &[(u64, Option<(u16, u16)>)]) -> SkippedMessages {
        let mut list = SkippedMessages::default();
        messages.iter().for_each(|&(last, ordered)| list.insert(Skipped { last, ordered }));
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
        assert_eq!(streams, [(1, 5), (2, 0)]);
    }

    #[test]
    fn a_list_that_is_full_ends_before_the_message_that_does_not_fit() {
        let list = list(&[(4, Some((2, 0))), (6, Some((1, 0))), (8, Some((2, 1))), (9, Some((0, 0)))]);
        let mut streams = Vec::new();
        assert_eq!(list.streams_up_to(9, 2, &mut streams), Some(8));
        assert_eq!(streams, [(1, 0), (2, 1)]);
        assert_eq!(list.streams_up_to(9, 0, &mut streams), None);
    }

    #[test]
    fn streams_below_the_cumulative_tsn_are_not_listed_again() {
        let mut list = list(&[(4, Some((2, 0))), (6, Some((1, 0)))]);
        list.forget_up_to(4);
        let mut streams = Vec::new();
        assert_eq!(list.streams_up_to(6, 9, &mut streams), Some(6));
        assert_eq!(streams, [(1, 0)]);
        list.forget_up_to(6);
        assert!(list.is_empty());
    }
}
