//! Form of user data: its bytes, or its length alone.

use anabranch_wire::{NoSpace, PacketWriter};

use crate::data_header::DataHeader;

/// Form of user data between sending and receiving application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contents {
    /// The bytes are carried.
    #[default]
    Carried,
    /// The length is carried, and the place of the bytes in packets is not written.
    Counted,
}

impl Contents {
    /// Adds a DATA or I-DATA chunk with room for this user data.
    pub(crate) fn write(
        self,
        writer: &mut PacketWriter<'_>,
        header: &DataHeader,
        payload: &[u8],
    ) -> Result<(), NoSpace> {
        match (self, header) {
            (Contents::Carried, DataHeader::Data(repr)) => writer.data(repr, payload),
            (Contents::Carried, DataHeader::IData(repr)) => writer.i_data(repr, payload),
            (Contents::Counted, DataHeader::Data(repr)) => writer.data_unwritten(repr, payload.len()),
            (Contents::Counted, DataHeader::IData(repr)) => writer.i_data_unwritten(repr, payload.len()),
        }
    }
}
