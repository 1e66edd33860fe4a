//! Requests that reset the stream sequence numbers of streams (RFC 6525 sections 4.1 to 4.3).
//!
//! ```text
//!  | type = 13                     | length = 16 + 2 * streams     |  outgoing SSN reset
//!  | sequence number of this request                               |
//!  | sequence number of the request of the peer that this answers  |
//!  | last TSN that the sender has assigned                         |
//!  | stream                        | stream                        |  and so on; none means all
//!
//!  | type = 14                     | length = 8 + 2 * streams      |  incoming SSN reset
//!  | sequence number of this request                               |
//!  | stream                        | stream                        |  and so on; none means all
//!
//!  | type = 15                     | length = 8                    |  SSN/TSN reset
//!  | sequence number of this request                               |
//! ```

use super::{Param, list};
use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError};
use crate::list::List;
use crate::reader::Reader;
use crate::serial::{StreamId, Tsn};

/// Request to reset streams on which the sender of the request sends (RFC 6525 section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingReset<'a> {
    /// Sequence number of the request.
    pub request: u32,
    /// Sequence number of the incoming SSN reset request that this request answers. In other requests it is the expected next
    /// sequence number of the peer minus one.
    pub response: u32,
    /// Last TSN that the sender has assigned.
    pub last_tsn: Tsn,
    /// Streams to reset. An empty list means all.
    pub streams: List<'a, StreamId>,
}

pub(super) fn read_outgoing(mut value: Reader<'_>) -> Result<Param<'_>, ParseError> {
    Ok(Param::OutgoingReset(OutgoingReset {
        request: value.u32()?,
        response: value.u32()?,
        last_tsn: Tsn::new(value.u32()?),
        streams: list(value)?,
    }))
}

pub(super) fn write_outgoing(value: &mut Cursor<'_>, reset: OutgoingReset<'_>) -> Result<(), NoSpace> {
    value.u32(reset.request)?;
    value.u32(reset.response)?;
    value.u32(reset.last_tsn.get())?;
    value.items(reset.streams.iter()).map(drop)
}

pub(super) fn read_incoming(mut value: Reader<'_>) -> Result<Param<'_>, ParseError> {
    Ok(Param::IncomingReset { request: value.u32()?, streams: list(value)? })
}

pub(super) fn write_incoming(
    value: &mut Cursor<'_>,
    request: u32,
    streams: List<'_, StreamId>,
) -> Result<(), NoSpace> {
    value.u32(request)?;
    value.items(streams.iter()).map(drop)
}

pub(super) fn read_ssn_tsn<'a>(mut value: Reader<'a>) -> Result<Param<'a>, ParseError> {
    let request = value.u32()?;
    value.end().map(|()| Param::SsnTsnReset { request })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ParseErrorKind;
    use crate::testing::{assert_param, param_error};

    #[test]
    fn layouts() {
        let (last_tsn, streams) = (Tsn::new(9), [StreamId::new(0x0102), StreamId::new(3)]);
        let numbers = [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9];
        for (list, bytes) in [(&streams[..], &[1, 2, 0, 3][..]), (&[], &[])] {
            let streams = List::new(list);
            let reset = OutgoingReset { request: 0x0102_0304, response: 0x0506_0708, last_tsn, streams };
            assert_param(13, &[&numbers[..], bytes].concat(), Param::OutgoingReset(reset));
            let incoming = Param::IncomingReset { request: 0x0102_0304, streams };
            assert_param(14, &[&numbers[..4], bytes].concat(), incoming);
        }
        assert_param(15, &numbers[..4], Param::SsnTsnReset { request: 0x0102_0304 });
    }

    #[test]
    fn cut_numbers_and_half_a_stream_are_errors() {
        for (kind, shortest) in [(13, 12), (14, 4), (15, 4)] {
            for len in (0..shortest).chain([shortest + 1]) {
                assert_eq!(param_error(kind, &[0; 20][..len]), ParseErrorKind::WrongLength, "{kind}: {len}");
            }
        }
        assert_eq!(param_error(15, &[0; 6]), ParseErrorKind::WrongLength);
    }
}
