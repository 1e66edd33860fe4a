//! Names in a folder at the source.

use crate::protocol::{LISTED_NAME_BYTES, MAX_LISTED_BYTES, ProtocolError};

/// Names in byte order, stored contiguously. [`LISTED_NAME_BYTES`] and the limits bound their memory.
#[derive(Debug, Default)]
pub(crate) struct ListedNames {
    text: String,
    /// End of each name in `text`.
    ends: Vec<u32>,
}

impl ListedNames {
    /// Adds a name.
    pub(crate) fn push(&mut self, name: &str) -> Result<(), ProtocolError> {
        if self.ends.len().checked_sub(1).is_some_and(|last| self.get(last) >= name) {
            return Err(ProtocolError::Unexpected("a listing out of order"));
        }
        let counted = self.text.len() + name.len() + (self.ends.len() + 1) * LISTED_NAME_BYTES;
        let end = u32::try_from(self.text.len() + name.len());
        let (true, Ok(end)) = (counted <= MAX_LISTED_BYTES, end) else {
            return Err(ProtocolError::Unexpected("a longer listing than agreed"));
        };
        self.text.push_str(name);
        self.ends.push(end);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &str {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[begin..self.ends[at] as usize]
    }

    /// Returns the index of a name in the list.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let (mut begin, mut end) = (0, self.len());
        while begin < end {
            let middle = begin.midpoint(end);
            match self.get(middle).cmp(name) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => begin = middle + 1,
                std::cmp::Ordering::Greater => end = middle,
            }
        }
        None
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_come_in_order_and_once() {
        let mut names = ListedNames::default();
        assert_eq!(names.push("b"), Ok(()));
        for name in ["a", "b"] {
            assert_eq!(names.push(name), Err(ProtocolError::Unexpected("a listing out of order")));
        }
        assert_eq!(names.push("ba"), Ok(()));
    }

    #[test]
    fn list_stays_within_the_agreed_size() {
        let mut names = ListedNames::default();
        let mut number = 0_usize;
        while names.push(&format!("{number:08}")).is_ok() {
            number += 1;
        }
        assert_eq!(number, MAX_LISTED_BYTES / (8 + LISTED_NAME_BYTES));
        assert!(names.text.len() + 4 * names.ends.len() <= MAX_LISTED_BYTES);
    }

    proptest! {
        #[test]
        fn only_listed_names_are_found(
            listed in prop::collection::btree_set("[a-cé]{1,3}", 0..40),
            asked in prop::collection::btree_set("[a-cé]{0,3}", 0..40),
        ) {
            let mut names = ListedNames::default();
            listed.iter().for_each(|name| names.push(name).expect("in order"));
            let found: BTreeSet<&String> = asked.iter().filter(|name| names.contains(name)).collect();
            prop_assert_eq!(found, asked.intersection(&listed).collect());
        }
    }
}
