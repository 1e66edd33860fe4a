//! Whether user data is carried, or its length alone.

use anabranch_wire::{DataRepr, NoSpace, PacketWriter};

/// What becomes of user data between those who send and those who receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contents {
    /// It is carried.
    #[default]
    Carried,
    /// It has its place in packets and buffers, but nothing is written there.
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
