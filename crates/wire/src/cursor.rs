//! Writes fields in network byte order into the free space of a packet.

use crate::error::NoSpace;
use crate::list::Item;
use crate::reader::{TLV_HEADER_LEN, padded_len};

/// Write position in a chunk. Positions count from the start of the chunk.
///
/// Written bytes take effect only when the packet writer adopts the position, so a failed write needs no rollback.
pub(crate) struct Cursor<'s> {
    space: &'s mut [u8],
    at: usize,
}

impl<'s> Cursor<'s> {
    pub(crate) const fn new(space: &'s mut [u8]) -> Self {
        Self { space, at: 0 }
    }

    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Claims the next `len` bytes, which the caller fills.
    pub(crate) fn claim(&mut self, len: usize) -> Result<&mut [u8], NoSpace> {
        let space = self.space.get_mut(self.at..).and_then(|left| left.get_mut(..len)).ok_or(NoSpace)?;
        self.at += len;
        Ok(space)
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), NoSpace> {
        self.claim(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    //= docs/rfc9260.txt#section-3
    //# All integer fields in an SCTP packet MUST be transmitted in network byte order, unless otherwise stated.
    pub(crate) fn u16(&mut self, value: u16) -> Result<(), NoSpace> {
        self.put(&value.to_be_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> Result<(), NoSpace> {
        self.put(&value.to_be_bytes())
    }

    /// Writes every item and returns their number.
    pub(crate) fn items<T: Item>(
        &mut self,
        items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    ) -> Result<usize, NoSpace> {
        let items = items.into_iter();
        let count = items.len();
        let space = self.claim(count.saturating_mul(size_of::<T::Wire>()))?;
        // Zips equally many places and items without bounds checks, so that compilers vectorise the loop.
        T::places(space).iter_mut().zip(items).for_each(|(place, item)| *place = item.to_wire());
        Ok(count)
    }

    /// Writes zeros up to the next four-byte boundary.
    pub(crate) fn pad(&mut self) -> Result<(), NoSpace> {
        //= docs/rfc9260.txt#section-3.2
        //# The sender MUST NOT pad with more than 3 bytes.
        //= docs/rfc9260.txt#section-3.2.1
        //# The total length of a parameter (including Parameter Type, Parameter Length, and Parameter Value fields) MUST
        //# be a multiple of 4 bytes.
        //= docs/rfc9260.txt#section-3.2.1
        //# A sender MUST NOT pad with more than 3 bytes.
        self.claim(padded_len(self.at) - self.at)?.fill(0);
        Ok(())
    }

    /// Replaces a number written earlier, once its value is known.
    ///
    /// A value too large for its field makes the whole chunk unwritable.
    pub(crate) fn set_u16(&mut self, at: usize, value: usize) -> Result<(), NoSpace> {
        let value = u16::try_from(value).map_err(|_| NoSpace)?;
        let field = self.space.get_mut(at..).and_then(|tail| tail.first_chunk_mut()).ok_or(NoSpace)?;
        *field = value.to_be_bytes();
        Ok(())
    }

    /// Writes a type, a length filled in afterwards, and the value that `body` writes.
    ///
    /// Pads the preceding bytes rather than its own value: the length of a chunk does not count the padding of its
    /// last TLV (RFC 9260 section 3.2).
    pub(crate) fn tlv(
        &mut self,
        kind: [u8; 2],
        body: impl FnOnce(&mut Self) -> Result<(), NoSpace>,
    ) -> Result<(), NoSpace> {
        self.pad()?;
        let start = self.at;
        let [a, b] = kind;
        self.put(&[a, b, 0, 0])?;
        body(self)?;
        self.set_u16(start + TLV_HEADER_LEN / 2, self.at - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tlv_pads_what_came_before_it() {
        let mut space = [0xEE; 16];
        let mut cursor = Cursor::new(&mut space);
        cursor.tlv([0, 1], |value| value.put(b"a")).unwrap();
        cursor.tlv([0, 2], |value| value.put(b"bc")).unwrap();
        assert_eq!(cursor.at(), 14);
        assert_eq!(space, *b"\x00\x01\x00\x05a\x00\x00\x00\x00\x02\x00\x06bc\xEE\xEE");
    }

    #[test]
    fn items_are_written_up_to_the_end_of_the_space_or_not_at_all() {
        let mut space = [0xEE; 7];
        let mut cursor = Cursor::new(&mut space);
        assert_eq!(cursor.items([1_u16, 2, 3, 4]), Err(NoSpace));
        assert_eq!(cursor.items([1_u16, 0x0203]), Ok(2));
        assert_eq!(cursor.items([4_u16]), Ok(1));
        assert_eq!(cursor.items([5_u16]), Err(NoSpace));
        assert_eq!((cursor.at(), space), (6, [0, 1, 2, 3, 0, 4, 0xEE]));
    }

    #[test]
    fn a_length_beyond_sixteen_bits_has_no_space() {
        let mut space = vec![0; 70_000];
        let mut cursor = Cursor::new(&mut space);
        assert_eq!(cursor.tlv([0, 1], |value| value.put(&[0; 65_532])), Err(NoSpace));
    }
}
