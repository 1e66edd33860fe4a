//! ASCONF and ASCONF-ACK chunks: change the addresses of an established association (RFC 5061 section 4.1).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 193    | flags = 0     | length                        |
//!  +---------------+---------------+---------------+---------------+
//!  | sequence number                                               |
//!  +---------------------------------------------------------------+
//!  | an address parameter, to find the association by              |
//!  +---------------------------------------------------------------+
//!  | parameters: requested changes                                 |
//!  +---------------------------------------------------------------+
//!
//!  +---------------+---------------+---------------+---------------+
//!  | type = 128    | flags = 0     | length                        |
//!  +---------------+---------------+---------------+---------------+
//!  | sequence number of the ASCONF                                 |
//!  +---------------------------------------------------------------+
//!  | parameters: result of each; none if all succeeded             |
//!  +---------------------------------------------------------------+
//! ```

use std::net::IpAddr;

use super::{ChunkType, RawChunk};
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::param::{Param, Params, RawParam, RawParams, address_param};
use crate::reader::padded_len;
use crate::writer::PacketWriter;

/// Received ASCONF.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsconfView<'a> {
    serial: u32,
    address: IpAddr,
    params: RawParams<'a>,
}

impl<'a> AsconfView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        let serial = fields.u32()?;
        let first = RawParam::parse(fields.rest()).map_err(|error| error.shifted(fields.offset()))?;
        let address = first.decode().ok().and_then(|param| param.address());
        // RFC 5061 section 4.1.1: every ASCONF begins with an Address parameter.
        let address = address.ok_or(fields.error(ParseErrorKind::WrongLength))?;
        let taken = padded_len(first.bytes().len());
        let rest = fields.rest().get(taken..).unwrap_or_default();
        Ok(Self { serial, address, params: RawParams::new(rest, fields.offset() + taken) })
    }

    /// Returns the sequence number.
    pub const fn serial(&self) -> u32 {
        self.serial
    }

    /// Returns an address of the sender that identifies the association. All zeros mean that only the tag identifies it.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Iterates over the ASCONF parameters and decodes them.
    pub const fn params(&self) -> Params<'a> {
        self.params.decoded()
    }

    /// Iterates over the undecoded ASCONF parameters, for quoting them in an answer.
    pub const fn raw_params(&self) -> RawParams<'a> {
        self.params
    }
}

/// Received ASCONF-ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsconfAckView<'a> {
    serial: u32,
    params: RawParams<'a>,
}

impl<'a> AsconfAckView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        let serial = fields.u32()?;
        Ok(Self { serial, params: RawParams::new(fields.rest(), fields.offset()) })
    }

    /// Returns the sequence number of the acknowledged ASCONF.
    pub const fn serial(&self) -> u32 {
        self.serial
    }

    /// Iterates over the responses to the ASCONF parameters and decodes them.
    pub const fn params(&self) -> Params<'a> {
        self.params.decoded()
    }
}

impl PacketWriter<'_> {
    /// Adds an ASCONF. `address` is an address of the local endpoint by which the peer finds the association.
    pub fn asconf<'p>(
        &mut self,
        serial: u32,
        address: IpAddr,
        params: impl IntoIterator<Item = Param<'p>>,
    ) -> Result<(), NoSpace> {
        self.chunk(ChunkType::ASCONF, 0, |cursor| {
            cursor.u32(serial)?;
            address_param(address).write(cursor)?;
            params.into_iter().try_for_each(|param| param.write(cursor))
        })
    }

    /// Adds an ASCONF-ACK.
    pub fn asconf_ack<'p>(
        &mut self,
        serial: u32,
        params: impl IntoIterator<Item = Param<'p>>,
    ) -> Result<(), NoSpace> {
        self.chunk(ChunkType::ASCONF_ACK, 0, |cursor| {
            cursor.u32(serial)?;
            params.into_iter().try_for_each(|param| param.write(cursor))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{decode, only, param, write};
    use proptest::prelude::*;

    #[test]
    fn asconf_without_a_complete_address_is_an_error() {
        let good = [0, 0, 0, 1, 0, 5, 0, 8, 192, 0, 2, 1];
        assert!(decode(0xC1, 0, &good).is_ok());
        for len in 0..good.len() {
            assert!(decode(0xC1, 0, &good[..len]).is_err(), "{len} bytes");
        }
        let other = [0, 0, 0, 1, 0xC0, 0x06, 0, 8, 192, 0, 2, 1];
        assert_eq!(decode(0xC1, 0, &other).unwrap_err().kind, ParseErrorKind::WrongLength);
    }

    #[test]
    fn an_acknowledgement_has_a_number_at_least() {
        assert_eq!(decode(0x80, 0, &[0; 3]).unwrap_err().kind, ParseErrorKind::WrongLength);
        assert!(decode(0x80, 0, &[0; 4]).is_ok());
    }

    #[test]
    fn an_asconf_made_by_hand() {
        let params = [
            Param::AddIp { correlation: 0x0102_0304, address: [192, 0, 2, 1].into() },
            Param::DeleteIp { correlation: 5, address: [192, 0, 2, 2].into() },
        ];
        let packet = write(|packet| packet.asconf(7, [0, 0, 0, 0].into(), params));
        let expected = [
            0xC1, 0, 0, 48, // ASCONF of 48 bytes
            0, 0, 0, 7, // sequence number 7
            0, 5, 0, 8, 0, 0, 0, 0, // the association is found by its tag
            0xC0, 1, 0, 16, 1, 2, 3, 4, 0, 5, 0, 8, 192, 0, 2, 1, // add
            0xC0, 2, 0, 16, 0, 0, 0, 5, 0, 5, 0, 8, 192, 0, 2, 2, // delete
        ];
        assert_eq!(packet[12..], expected);
    }

    proptest! {
        #[test]
        fn round_trip(serial: u32, address: IpAddr, params in prop::collection::vec(param(), 0..6)) {
            let packet = write(|packet| packet.asconf(serial, address, params.iter().copied()));
            let view = only!(Asconf, &packet);
            prop_assert_eq!((view.serial(), view.address()), (serial, address));
            prop_assert!(view.params().eq(params.iter().copied().map(Ok)));
            prop_assert!(view.raw_params().map(|raw| raw.unwrap().decode()).eq(view.params()));

            let packet = write(|packet| packet.asconf_ack(serial, params.iter().copied()));
            let view = only!(AsconfAck, &packet);
            prop_assert_eq!(view.serial(), serial);
            prop_assert!(view.params().eq(params.iter().copied().map(Ok)));
        }
    }
}
