//! Errors: malformed packets and full buffers.

use std::error::Error;
use std::fmt;

/// Reason why bytes could not be parsed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The packet is shorter than the common header.
    PacketTooShort,
    /// Fewer than four bytes are left where a chunk, parameter or cause must begin.
    TruncatedHeader,
    /// A length field counts less than its own four-byte header.
    LengthTooShort,
    /// A length field exceeds the enclosing packet, chunk, parameter or cause.
    LengthTooLong,
    /// The length is invalid for this type of chunk, parameter or cause.
    WrongLength,
    /// A count field contradicts the length.
    CountMismatch,
    /// Another parameter appears where a specific one is required.
    WrongParameter,
    /// The header of a DTLS record is not the one that DTLS chunks use.
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
            Self::CountMismatch => "count does not match the length",
            Self::WrongParameter => "another parameter than the required one",
            Self::WrongRecordHeader => "no header of a DTLS record as the DTLS chunk has it",
        }
    }
}

/// Reason and position of a parse error.
///
/// The offset counts from the start of the parsed bytes: the packet for [`PacketView::parse`] and [`Chunks`]; the
/// chunk for [`RawChunk::decode`] and the parameters and causes in it; the parameter or cause for their own
/// `decode`. [`shifted`](Self::shifted) converts it to an outer start.
///
/// [`PacketView::parse`]: crate::PacketView::parse
/// [`Chunks`]: crate::Chunks
/// [`RawChunk::decode`]: crate::RawChunk::decode
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ParseError {
    /// Reason of the rejection.
    pub kind: ParseErrorKind,
    /// Offset in bytes.
    pub offset: usize,
}

impl ParseError {
    /// Creates an error of this kind at this offset.
    pub const fn new(kind: ParseErrorKind, offset: usize) -> Self {
        Self { kind, offset }
    }

    /// Returns the same error with `by` added to its offset.
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

/// The chunk does not fit into the buffer, or its value into a 16-bit length field.
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
    fn errors_name_failure_and_offset() {
        let error = ParseError::new(ParseErrorKind::LengthTooLong, 4).shifted(12);
        assert_eq!(error.to_string(), "length field past the end at byte 16");
        assert_eq!(NoSpace.to_string(), "no space left in the packet");
    }
}
