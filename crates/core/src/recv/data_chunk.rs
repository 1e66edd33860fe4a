//! Received DATA or I-DATA chunk.

use anabranch_wire::{DataFlags, DataView, IDataView, StreamId, Tsn};

use crate::recv::reassembly::{Fragment, Place};

#[derive(Clone, Copy, Debug)]
pub(crate) enum DataChunk<'a> {
    Data(DataView<'a>),
    IData(IDataView<'a>),
}

impl<'a> DataChunk<'a> {
    pub(crate) fn is_interleaved(&self) -> bool {
        matches!(self, DataChunk::IData(_))
    }

    pub(crate) fn tsn(&self) -> Tsn {
        match self {
            DataChunk::Data(data) => data.tsn(),
            DataChunk::IData(data) => data.repr().tsn,
        }
    }

    pub(crate) fn stream(&self) -> StreamId {
        match self {
            DataChunk::Data(data) => data.stream(),
            DataChunk::IData(data) => data.repr().stream,
        }
    }

    pub(crate) fn flags(&self) -> DataFlags {
        match self {
            DataChunk::Data(data) => data.flags(),
            DataChunk::IData(data) => data.repr().flags,
        }
    }

    pub(crate) fn payload(&self) -> &'a [u8] {
        match self {
            DataChunk::Data(data) => data.payload(),
            DataChunk::IData(data) => data.payload(),
        }
    }

    /// Returns the payload protocol identifier, which later fragments of an I-DATA message do not have.
    pub(crate) fn ppid(&self) -> Option<u32> {
        match self {
            DataChunk::Data(data) => Some(data.ppid()),
            DataChunk::IData(data) => data.repr().ppid(),
        }
    }

    /// Returns the chunk for reassembly, with its TSN unwrapped near another one.
    pub(crate) fn fragment(&self, near: u64) -> Fragment<'a> {
        let (ssn, place) = match self {
            DataChunk::Data(data) => (data.ssn().get(), None),
            DataChunk::IData(data) => (0, Some(Place { mid: data.repr().mid, fsn: data.repr().fsn() })),
        };
        let flags = self.flags();
        Fragment {
            tsn: self.tsn().unwrap_near(near),
            stream: self.stream().get(),
            ssn,
            ppid: self.ppid().unwrap_or(0),
            place,
            unordered: flags.unordered,
            beginning: flags.beginning,
            ending: flags.ending,
            payload: self.payload(),
        }
    }
}
