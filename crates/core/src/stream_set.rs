//! Streams of one direction that a request names.

use anabranch_wire::{List, StreamId};

/// Streams of one direction that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamSet {
    All,
    /// Streams in ascending order, each once, and at least one.
    Listed(Vec<u16>),
}

impl StreamSet {
    /// Returns the set of these streams; no stream means all, as in the requests of RFC 6525.
    pub(crate) fn of(streams: impl IntoIterator<Item = u16>) -> Self {
        let mut listed: Vec<u16> = streams.into_iter().collect();
        listed.sort_unstable();
        listed.dedup();
        if listed.is_empty() { StreamSet::All } else { StreamSet::Listed(listed) }
    }

    /// Reads the list of a request.
    pub(crate) fn read(list: List<'_, StreamId>) -> Self {
        Self::of(list.iter().map(StreamId::get))
    }

    /// Returns the streams as a request lists them: none for all.
    pub(crate) fn listed(&self) -> &[u16] {
        match self {
            StreamSet::All => &[],
            StreamSet::Listed(streams) => streams,
        }
    }

    /// Returns the first stream that is not below `streams`.
    pub(crate) fn first_beyond(&self, streams: u16) -> Option<u16> {
        self.listed().iter().copied().find(|stream| *stream >= streams)
    }

    pub(crate) fn contains(&self, stream: u16) -> bool {
        match self {
            StreamSet::All => true,
            StreamSet::Listed(streams) => streams.binary_search(&stream).is_ok(),
        }
    }

    /// Returns a stream of both sets.
    pub(crate) fn first_shared(&self, other: &StreamSet) -> Option<u16> {
        match (self, other) {
            (StreamSet::All, StreamSet::All) => Some(0),
            (StreamSet::All, StreamSet::Listed(streams)) | (StreamSet::Listed(streams), StreamSet::All) => {
                streams.first().copied()
            }
            (StreamSet::Listed(streams), other) => {
                streams.iter().copied().find(|stream| other.contains(*stream))
            }
        }
    }

    /// Splits the set into sets of at most `most` streams.
    pub(crate) fn split(self, most: usize) -> Vec<StreamSet> {
        match self {
            StreamSet::All => vec![StreamSet::All],
            StreamSet::Listed(streams) => {
                streams.chunks(most).map(|part| StreamSet::Listed(part.to_vec())).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_streams_count_once_and_none_means_all() {
        assert_eq!(StreamSet::of([5, 2, 5]).listed(), [2, 5]);
        assert_eq!(StreamSet::of([]), StreamSet::All);
        assert!(StreamSet::All.contains(7) && StreamSet::All.listed().is_empty());
    }

    #[test]
    fn shared_stream_is_found_in_any_pair_of_sets() {
        let (some, others) = (StreamSet::of([1, 4]), StreamSet::of([2, 4]));
        assert_eq!(some.first_shared(&others), Some(4));
        assert_eq!(some.first_shared(&StreamSet::of([2])), None);
        assert_eq!(
            (some.first_shared(&StreamSet::All), StreamSet::All.first_shared(&others)),
            (Some(1), Some(2))
        );
        assert_eq!(some.first_beyond(4), Some(4));
        assert_eq!(some.first_beyond(5), None);
    }

    #[test]
    fn long_set_is_split_and_keeps_all_streams() {
        let parts = StreamSet::of(0..5).split(2);
        let lengths: Vec<_> = parts.iter().map(|part| part.listed().len()).collect();
        assert_eq!(lengths, [2, 2, 1]);
        assert_eq!(StreamSet::All.split(2), [StreamSet::All]);
    }
}
