//! Parameters for AUTH chunks (RFC 4895 section 3). This crate only encodes and decodes them: it does not
//! compute authentication codes.
//!
//! ```text
//!  | type = 0x8002                 | length                        |  random
//!  | random number                                                 |
//!
//!  | type = 0x8003                 | length = 4 + chunk types      |  chunk list
//!  | chunk type    | chunk type    | and so on                     |
//!
//!  | type = 0x8004                 | length = 4 + 2 * codes        |  requested HMAC algorithm
//!  | number of an authentication code, the preferred first         |
//! ```

#[cfg(test)]
mod tests {
    use crate::testing::{assert_param, param_error};
    use crate::{ChunkType, List, Param, ParseErrorKind};

    #[test]
    fn layouts() {
        assert_param(0x8002, &[7; 32], Param::Random(&[7; 32]));
        assert_param(0x8003, &[0xC1, 0x80], Param::ChunkList(List::new(&[ChunkType(0xC1), ChunkType(0x80)])));
        assert_param(0x8004, &[0, 3, 0, 1], Param::HmacAlgorithms(List::new(&[3, 1])));
    }

    #[test]
    fn half_a_number_is_an_error() {
        assert_eq!(param_error(0x8004, &[0, 3, 0]), ParseErrorKind::WrongLength);
    }
}
