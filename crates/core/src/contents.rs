//! Form of user data: its bytes, or its length alone.

use anabranch_wire::{DataRepr, NoSpace, PacketWriter};

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
    /// Adds a DATA chunk with room for this user data.
    pub(crate) fn write(
        self,
        writer: &mut PacketWriter<'_>,
        repr: &DataRepr,
        payload: &[u8],
    ) -> Result<(), NoSpace> {
        match self {
            Contents::Carried => writer.data(repr, payload),
            Contents::Counted => writer.data_unwritten(repr, payload.len()),
        }
    }
}
