//! What can go wrong: bytes that are no SCTP, and a buffer that is full.

use std::error::Error;
use std::fmt;

/// Why some bytes could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The packet is shorter than the common header.
    PacketTooShort,
    /// Fewer than four bytes are left where a chunk, parameter or cause has to begin.
    TruncatedHeader,
    /// A length field counts less than its own four-byte header.
    LengthTooShort,
    /// A length field reaches past the end of what holds it.
    LengthTooLong,
    /// The length is one that this type of chunk, parameter or cause cannot have.
    WrongLength,
    /// A count inside does not fit the length.
    CountMismatch,
    /// The parameter that has to stand here is another one.
    WrongParameter,
    /// A DTLS record begins with another header than those of DTLS chunks.
    WrongRecordHeader,
}

impl ParseErrorKind {
    const fn text(self) -> &'static str {
        match self {
            Self::PacketTooShort => "packet shorter than the common header",
            Self::TruncatedHeader => "truncated header",
            Self::LengthTooShort => "length field shorter than its header",
            Self::LengthTooLong => "length field past the end",
            Self::WrongLength => "length impossible for the type",
            Self::CountMismatch => "count does not fit the length",
            Self::WrongParameter => "another parameter than the required one",
            Self::WrongRecordHeader => "no header of a DTLS record as the DTLS chunk has it",
        }
    }
}

/// Why, and at which byte, some bytes could not be read.
///
/// The offset counts from the start of what was being read: the packet for [`PacketView::parse`] and [`Chunks`];
/// the chunk for [`RawChunk::decode`] and for the parameters and causes walked inside it; the parameter or cause for
/// their own `decode`. [`shifted`](Self::shifted) moves it to an outer start.
///
/// [`PacketView::parse`]: crate::PacketView::parse
/// [`Chunks`]: crate::Chunks
/// [`RawChunk::decode`]: crate::RawChunk::decode
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ParseError {
    /// What is wrong.
    pub kind: ParseErrorKind,
    /// Where it is wrong.
    pub offset: usize,
}

impl ParseError {
    /// An error of this kind at this byte.
    pub const fn new(kind: ParseErrorKind, offset: usize) -> Self {
        Self { kind, offset }
    }

    /// The same error, its offset counted from `by` bytes earlier.
    pub const fn shifted(self, by: usize) -> Self {
        Self { kind: self.kind, offset: self.offset.saturating_add(by) }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind.text(), self.offset)
    }
}

impl Error for ParseError {}

/// What was to be written does not fit: into the buffer, or into a 16-bit length field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NoSpace;

impl fmt::Display for NoSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no space left in the packet")
    }
}

impl Error for NoSpace {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_and_where() {
        let error = ParseError::new(ParseErrorKind::LengthTooLong, 4).shifted(12);
        assert_eq!(error.to_string(), "length field past the end at byte 16");
        assert_eq!(NoSpace.to_string(), "no space left in the packet");
    }
}
