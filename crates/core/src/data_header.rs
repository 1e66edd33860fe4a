//! Header of a DATA or I-DATA chunk to send.

use anabranch_wire::{DataFlags, DataRepr, IDataRepr, Mid, Ssn, StreamId, Tsn};

use crate::send::{DataForm, Draft};

#[derive(Clone, Copy, Debug)]
pub(crate) enum DataHeader {
    Data(DataRepr),
    IData(IDataRepr),
}

impl DataHeader {
    pub(crate) fn new(tsn: u64, draft: &Draft) -> Self {
        let flags = DataFlags {
            ending: draft.ending,
            beginning: draft.beginning,
            unordered: draft.unordered,
            immediate: draft.immediate,
        };
        let (tsn, stream) = (Tsn::from_unwrapped(tsn), StreamId::new(draft.stream));
        match draft.form {
            DataForm::Data => {
                let ssn = Ssn::new(draft.ssn());
                DataHeader::Data(DataRepr { flags, tsn, stream, ssn, ppid: draft.ppid_or_fsn })
            }
            DataForm::IData => {
                let mid = Mid::new(draft.number);
                DataHeader::IData(IDataRepr { flags, tsn, stream, mid, ppid_or_fsn: draft.ppid_or_fsn })
            }
        }
    }

    /// Sets the I bit if `immediate` is set.
    pub(crate) fn ask_for_sack(&mut self, immediate: bool) {
        match self {
            DataHeader::Data(repr) => repr.flags.immediate |= immediate,
            DataHeader::IData(repr) => repr.flags.immediate |= immediate,
        }
    }
}
