//! Lists of small fixed-size items in chunks, parameters and causes, decoded in place.

use crate::serial::{Ssn, StreamId, Tsn};
use std::iter::Copied;
use std::{fmt, slice};

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Fixed-size item of a list on the wire. Sealed: only this crate implements it.
pub trait Item: Copy + PartialEq + fmt::Debug + sealed::Sealed {
    /// Encoded form: an array of bytes.
    type Wire: Copy + AsRef<[u8]> + fmt::Debug + 'static;

    /// Splits bytes into items and remaining bytes.
    fn split(bytes: &[u8]) -> (&[Self::Wire], &[u8]);

    /// Splits a writable buffer into places for items. Surplus bytes are ignored.
    fn places(bytes: &mut [u8]) -> &mut [Self::Wire];

    /// Decodes an item.
    fn from_wire(wire: Self::Wire) -> Self;

    /// Encodes an item.
    fn to_wire(self) -> Self::Wire;
}

/// Implements [`Item`] for a type, given its length in bytes and its decoding and encoding.
macro_rules! item {
    ($name:ty, $len:literal, $from:expr, $to:expr) => {
        impl $crate::list::sealed::Sealed for $name {}

        impl $crate::list::Item for $name {
            type Wire = [u8; $len];

            fn split(bytes: &[u8]) -> (&[Self::Wire], &[u8]) {
                bytes.as_chunks()
            }

            fn places(bytes: &mut [u8]) -> &mut [Self::Wire] {
                bytes.as_chunks_mut().0
            }

            fn from_wire(wire: Self::Wire) -> Self {
                $from(wire)
            }

            fn to_wire(self) -> Self::Wire {
                $to(self)
            }
        }
    };
}

pub(crate) use item;

item!(u16, 2, u16::from_be_bytes, u16::to_be_bytes);
item!(StreamId, 2, |wire| StreamId::new(u16::from_be_bytes(wire)), |id: StreamId| id.get().to_be_bytes());
item!(Tsn, 4, |wire| Tsn::new(u32::from_be_bytes(wire)), |tsn: Tsn| tsn.get().to_be_bytes());
item!(
    (StreamId, Ssn),
    4,
    |[a, b, c, d]: [u8; 4]| (StreamId::new(u16::from_be_bytes([a, b])), Ssn::new(u16::from_be_bytes([c, d]))),
    |(stream, ssn): (StreamId, Ssn)| {
        let ([a, b], [c, d]) = (stream.get().to_be_bytes(), ssn.get().to_be_bytes());
        [a, b, c, d]
    }
);

/// List of whole items in a packet.
pub(crate) struct WireList<'a, T: Item>(&'a [T::Wire]);

impl<'a, T: Item> WireList<'a, T> {
    /// Creates the list from these bytes. Returns `None` if they are not a whole number of items.
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Self> {
        let (items, left) = T::split(bytes);
        left.is_empty().then_some(Self(items))
    }

    pub(crate) const fn len(self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(self) -> Items<'a, T> {
        Items(self.0.iter())
    }
}

impl<T: Item> Copy for WireList<'_, T> {}

impl<T: Item> Clone for WireList<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Item> PartialEq for WireList<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Item + Eq> Eq for WireList<'_, T> {}

impl<T: Item> fmt::Debug for WireList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over the items of a list in a packet that decodes each item when it is reached.
pub struct Items<'a, T: Item>(slice::Iter<'a, T::Wire>);

impl<'a, T: Item> Items<'a, T> {
    /// Returns the remaining items, undecoded.
    pub fn as_wire(&self) -> &'a [T::Wire] {
        self.0.as_slice()
    }
}

impl<T: Item> Default for Items<'_, T> {
    fn default() -> Self {
        Self([].iter())
    }
}

impl<T: Item> Clone for Items<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Item> fmt::Debug for Items<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<T: Item> Iterator for Items<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next().copied().map(T::from_wire)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<T> {
        self.0.nth(n).copied().map(T::from_wire)
    }

    fn fold<B, F: FnMut(B, T) -> B>(self, init: B, mut f: F) -> B {
        self.0.fold(init, |folded, &wire| f(folded, T::from_wire(wire)))
    }
}

impl<T: Item> DoubleEndedIterator for Items<'_, T> {
    fn next_back(&mut self) -> Option<T> {
        self.0.next_back().copied().map(T::from_wire)
    }
}

impl<T: Item> ExactSizeIterator for Items<'_, T> {}

impl<T: Item> std::iter::FusedIterator for Items<'_, T> {}

/// List in a parameter or cause: bytes of a packet if it was read, a slice of items if it is to be written.
///
/// Two lists are equal if their items are equal.
pub struct List<'a, T: Item>(Source<'a, T>);

enum Source<'a, T: Item> {
    Wire(WireList<'a, T>),
    Typed(&'a [T]),
}

impl<'a, T: Item> List<'a, T> {
    /// Creates a list for writing.
    pub const fn new(items: &'a [T]) -> Self {
        Self(Source::Typed(items))
    }

    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        WireList::new(bytes).map(|list| Self(Source::Wire(list)))
    }

    /// Returns the number of items.
    pub const fn len(self) -> usize {
        match self.0 {
            Source::Wire(list) => list.len(),
            Source::Typed(items) => items.len(),
        }
    }

    /// Returns `true` if the list has no items.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Iterates over the items in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = T> + Clone + use<'a, T> {
        match self.0 {
            Source::Wire(list) => ListIter::Wire(list.iter()),
            Source::Typed(items) => ListIter::Typed(items.iter().copied()),
        }
    }

    /// Returns `true` if the list contains `item`.
    pub fn contains(self, item: T) -> bool {
        self.iter().any(|found| found == item)
    }
}

#[derive(Clone)]
enum ListIter<'a, T: Item> {
    Wire(Items<'a, T>),
    Typed(Copied<slice::Iter<'a, T>>),
}

impl<T: Item> Iterator for ListIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            ListIter::Wire(items) => items.next(),
            ListIter::Typed(items) => items.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            ListIter::Wire(items) => items.size_hint(),
            ListIter::Typed(items) => items.size_hint(),
        }
    }
}

impl<T: Item> ExactSizeIterator for ListIter<'_, T> {}

impl<T: Item> Copy for Source<'_, T> {}

impl<T: Item> Clone for Source<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Item> Copy for List<'_, T> {}

impl<T: Item> Clone for List<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Item> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Item + Eq> Eq for List<'_, T> {}

impl<T: Item> fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_list_equals_the_written_one() {
        let typed = [Tsn::new(1), Tsn::new(0x0102_0304)];
        let list = List::read(&[0, 0, 0, 1, 1, 2, 3, 4]).unwrap();
        assert_eq!(list, List::new(&typed));
        assert_eq!((list.len(), list.iter().len(), List::new(&typed).iter().len()), (2, 2, 2));
        assert!(list.contains(Tsn::new(1)) && !list.contains(Tsn::new(2)));
        assert_eq!(format!("{list:?}"), "[Tsn(1), Tsn(16909060)]");
    }

    #[test]
    fn lists_in_packets_are_equal_exactly_if_their_items_are() {
        let list = |bytes| WireList::<u16>::new(bytes).unwrap();
        assert!(list(&[0, 1, 0, 2]) == list(&[0, 1, 0, 2]));
        assert!(list(&[0, 1, 0, 2]) != list(&[0, 1, 0, 3]));
        assert!(list(&[0, 1]) != list(&[0, 1, 0, 2]));
        let typed = List::new(&[1_u16, 2]);
        assert!(List::new(&[1_u16, 3]) != typed && List::new(&[1_u16]) != typed);
    }

    #[test]
    fn left_over_bytes_are_no_list() {
        assert_eq!(List::<u16>::read(&[1, 2, 3]), None);
        assert!(List::<u16>::read(&[]).unwrap().is_empty());
    }

    #[test]
    fn items_come_from_both_ends() {
        let list = WireList::<u16>::new(&[0, 1, 0, 2, 0, 3]).unwrap();
        assert_eq!(list.iter().rev().collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(list.iter().nth(1), Some(2));
        assert_eq!(list.iter().len(), 3);
        let mut items = list.iter();
        items.next();
        assert_eq!(items.as_wire(), [[0, 2], [0, 3]]);
    }
}
