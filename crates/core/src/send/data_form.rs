//! Form of the chunks that carry user data.

use anabranch_wire::{DATA_HEADER_LEN, I_DATA_HEADER_LEN};

/// Form of the chunks that carry user data, which an association negotiates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DataForm {
    /// DATA (RFC 9260): the fragments of a message have consecutive TSNs.
    #[default]
    Data,
    /// I-DATA (RFC 8260): fragments of messages on different streams interleave.
    IData,
}

impl DataForm {
    /// Returns the length of the chunk header, in bytes.
    #[inline]
    pub(crate) const fn header_len(self) -> usize {
        match self {
            DataForm::Data => DATA_HEADER_LEN,
            DataForm::IData => I_DATA_HEADER_LEN,
        }
    }

    /// Returns the length of a chunk with this number of user bytes, without padding.
    #[inline]
    pub(crate) const fn chunk_len(self, payload_bytes: usize) -> usize {
        self.header_len() + payload_bytes
    }
}
