//! Extension parameters: ECN (RFC 4960 appendix A), FORWARD TSN (RFC 3758 section 3.1), supported extension
//! chunks and the adaptation layer (RFC 5061 sections 4.2.7 and 4.2.6).
//!
//! ```text
//!  | type = 0x8000                 | length = 4                    |  ECN capable
//!
//!  | type = 0x8008                 | length = 4 + chunk types      |  supported extensions
//!  | chunk type    | chunk type    | and so on                     |
//!
//!  | type = 0xC000                 | length = 4                    |  FORWARD TSN supported
//!
//!  | type = 0xC006                 | length = 8                    |  adaptation layer indication
//!  | a code that means nothing to SCTP                             |
//! ```

use crate::error::ParseError;
use crate::reader::Reader;

pub(super) fn read_indication(mut value: Reader<'_>) -> Result<u32, ParseError> {
    let indication = value.u32()?;
    value.end().map(|()| indication)
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_param, param_error};
    use crate::{ChunkType, List, Param, ParseErrorKind};

    #[test]
    fn layouts() {
        assert_param(0x8000, &[], Param::EcnCapable);
        let chunks = [ChunkType::FORWARD_TSN, ChunkType::NR_SACK, ChunkType::AUTH];
        assert_param(0x8008, &[0xC0, 0x10, 0x0F], Param::SupportedExtensions(List::new(&chunks)));
        assert_param(0xC000, &[], Param::ForwardTsnSupported);
        assert_param(0xC006, &[1, 2, 3, 4], Param::AdaptationIndication(0x0102_0304));
    }

    #[test]
    fn other_lengths_are_errors() {
        for (kind, value) in [(0x8000, &[0; 4][..]), (0xC000, &[0]), (0xC006, &[0; 3]), (0xC006, &[0; 8])] {
            assert_eq!(param_error(kind, value), ParseErrorKind::WrongLength);
        }
    }
}
