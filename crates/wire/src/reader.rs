//! Reads fields in network byte order and splits bytes into TLVs.
//!
//! Chunks (RFC 9260 section 3.2), parameters (section 3.2.1) and error causes (section 3.3.10) share one format:
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type, or type and flags       | length, these four included   |
//!  +---------------+---------------+---------------+---------------+
//!  | length - 4 bytes, then 0 to 3 of padding that length omits    |
//!  +---------------------------------------------------------------+
//! ```

use crate::error::{ParseError, ParseErrorKind};

/// Length of the header of a chunk, parameter or cause (type and length), in bytes.
pub(crate) const TLV_HEADER_LEN: usize = 4;

/// Returns `len` rounded up to the four-byte boundary at which the next chunk, parameter or cause begins.
pub const fn padded_len(len: usize) -> usize {
    len.saturating_add(3) & !3
}

/// Reader of fields from the front of a slice, which keeps the offset for errors.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, offset }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(self.error(ParseErrorKind::WrongLength))?;
        self.rest = rest;
        self.offset += N;
        Ok(*head)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ParseError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        self.array()
    }

    /// Returns the unread bytes.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn offset(&self) -> usize {
        self.offset
    }

    /// Checks that no bytes are left, for values of fixed length.
    pub(crate) fn end(&self) -> Result<(), ParseError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.error(ParseErrorKind::WrongLength)) }
    }

    pub(crate) const fn error(&self, kind: ParseErrorKind) -> ParseError {
        ParseError::new(kind, self.offset)
    }
}

/// One chunk, parameter or cause with its header and without padding, and its offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tlv<'a> {
    pub(crate) header: [u8; TLV_HEADER_LEN],
    pub(crate) bytes: &'a [u8],
    pub(crate) offset: usize,
}

/// Iterator that splits bytes into TLVs without their padding. It ends after the first error.
///
/// The padding of the last TLV may be missing, because the length of a chunk does not count it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tlvs<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Tlvs<'a> {
    pub(crate) const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, offset }
    }

    /// Returns the bytes that have not been split yet.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the first TLV, where one is required.
    pub(crate) fn first(mut self) -> Result<Tlv<'a>, ParseError> {
        self.cut()
    }

    fn cut(&mut self) -> Result<Tlv<'a>, ParseError> {
        let offset = self.offset;
        let error = |kind| Err(ParseError::new(kind, offset));
        let Some(header @ [_, _, high, low]) = self.rest.first_chunk().copied() else {
            return error(ParseErrorKind::TruncatedHeader);
        };
        let len = usize::from(u16::from_be_bytes([high, low]));
        if len < TLV_HEADER_LEN {
            return error(ParseErrorKind::LengthTooShort);
        }
        let Some(bytes) = self.rest.get(..len) else {
            return error(ParseErrorKind::LengthTooLong);
        };
        self.offset += padded_len(len);
        //= docs/rfc9260.txt#section-3.2
        //# The receiver MUST ignore the padding bytes.
        //= docs/rfc9260.txt#section-3.2.1
        //# The receiver MUST ignore the padding bytes.
        self.rest = self.rest.get(padded_len(len)..).unwrap_or_default();
        Ok(Tlv { header, bytes, offset })
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let tlv = self.cut();
        if tlv.is_err() {
            self.rest = &[];
        }
        Some(tlv)
    }
}

impl std::iter::FusedIterator for Tlvs<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(bytes: &[u8]) -> Vec<Result<&[u8], ParseError>> {
        Tlvs::new(bytes, 100).map(|tlv| tlv.map(|tlv| tlv.bytes)).collect()
    }

    //= docs/rfc9260.txt#section-3.2
    //= type=test
    //# The receiver MUST ignore the padding bytes.
    #[test]
    fn cuts_at_four_byte_boundaries() {
        let bytes = [1, 0, 0, 5, b'a', 0, 0, 0, 2, 0, 0, 4];
        assert_eq!(cut(&bytes), [Ok(&bytes[..5]), Ok(&bytes[8..])]);
    }

    #[test]
    fn the_last_padding_may_be_missing_or_partial() {
        let bytes = [1, 0, 0, 5, b'a', 0, 0, 0];
        for len in 5..=8 {
            assert_eq!(cut(&bytes[..len]), [Ok(&bytes[..5])]);
        }
    }

    #[test]
    fn a_wrong_length_ends_the_walk() {
        let first = [0, 0, 0, 4];
        for (second, kind) in [
            (&[0, 0, 0, 0][..], ParseErrorKind::LengthTooShort),
            (&[0, 0, 0, 3], ParseErrorKind::LengthTooShort),
            (&[0, 0, 0, 5], ParseErrorKind::LengthTooLong),
            (&[0, 0, 0xFF, 0xFF, 0], ParseErrorKind::LengthTooLong),
            (&[0, 0, 0], ParseErrorKind::TruncatedHeader),
        ] {
            let bytes = [&first[..], second].concat();
            assert_eq!(cut(&bytes), [Ok(&first[..]), Err(ParseError::new(kind, 104))]);
        }
    }

    #[test]
    fn padding_rounds_up() {
        assert_eq!([0, 1, 3, 4, 5].map(padded_len), [0, 4, 4, 4, 8]);
        assert_eq!(padded_len(usize::MAX) % 4, 0);
    }
}
