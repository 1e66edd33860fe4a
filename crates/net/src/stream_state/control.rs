//! Messages with which two Anabranch endpoints control streams above SCTP.
//!
//! All have the payload protocol identifier [`STREAM_CONTROL_PPID`]. [`InOrder`] messages are ordered messages of the stream that they
//! concern. [`Ahead`] messages are unordered messages on stream 0, which precede waiting data. Both sides announce them in INIT and
//! INIT-ACK; the key exchange of a protected association proves that the announcement was not changed on its way.

/// Payload protocol identifier of the control messages. It is not registered.
pub(crate) const STREAM_CONTROL_PPID: u32 = 0x6162_0001;

const FINISH: u8 = 1;
const RESET: u8 = 2;
const CREDIT: u8 = 3;
const STOP: u8 = 4;
const BLOCKED: u8 = 5;

/// Length of the longest message.
const LONGEST: usize = 11;

/// End of a stream, behind its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InOrder {
    /// The stream is complete.
    Finish,
    /// The sender gave the stream up, with a code of its application.
    Reset { code: u32 },
}

/// Report about the flow of a stream. A message has one or more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// A message of the stream may begin while fewer than `limit` bytes were sent since the association was established.
    Credit { stream: u16, limit: u64 },
    /// The sender waits for credit.
    Blocked { stream: u16 },
    /// The receiver discards the rest. `incarnation` counts the earlier uses of the identifier.
    Stop { stream: u16, incarnation: u32, code: u32 },
}

/// Bytes of a control message.
pub(crate) type Encoded = arrayvec::ArrayVec<u8, LONGEST>;

impl InOrder {
    pub(crate) fn encode(self) -> Encoded {
        match self {
            InOrder::Finish => joined(FINISH, &[]),
            InOrder::Reset { code } => joined(RESET, &[&code.to_be_bytes()]),
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (&FINISH, []) => Some(InOrder::Finish),
            (&RESET, code) => Some(InOrder::Reset { code: u32::from_be_bytes(code.try_into().ok()?) }),
            _ => None,
        }
    }
}

impl Ahead {
    pub(crate) fn encode(self) -> Encoded {
        match self {
            Ahead::Credit { stream, limit } => joined(CREDIT, &[&stream.to_be_bytes(), &limit.to_be_bytes()]),
            Ahead::Blocked { stream } => joined(BLOCKED, &[&stream.to_be_bytes()]),
            Ahead::Stop { stream, incarnation, code } => {
                joined(STOP, &[&stream.to_be_bytes(), &incarnation.to_be_bytes(), &code.to_be_bytes()])
            }
        }
    }

    /// Reads the first report of a message. Returns it with the bytes of the others.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&kind, rest) = bytes.split_first()?;
        let (stream, rest) = rest.split_first_chunk()?;
        let stream = u16::from_be_bytes(*stream);
        match kind {
            CREDIT => {
                let (limit, rest) = rest.split_first_chunk()?;
                Some((Ahead::Credit { stream, limit: u64::from_be_bytes(*limit) }, rest))
            }
            BLOCKED => Some((Ahead::Blocked { stream }, rest)),
            STOP => {
                let (incarnation, rest) = rest.split_first_chunk()?;
                let (code, rest) = rest.split_first_chunk()?;
                let (incarnation, code) = (u32::from_be_bytes(*incarnation), u32::from_be_bytes(*code));
                Some((Ahead::Stop { stream, incarnation, code }, rest))
            }
            _ => None,
        }
    }
}

fn joined(kind: u8, fields: &[&[u8]]) -> Encoded {
    std::iter::once(kind).chain(fields.iter().flat_map(|field| field.iter().copied())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN_ORDER: [InOrder; 2] = [InOrder::Finish, InOrder::Reset { code: 0x0102_0304 }];
    const AHEAD: [Ahead; 3] = [
        Ahead::Credit { stream: 0x0506, limit: 0x0708_090A_0B0C_0D0E },
        Ahead::Blocked { stream: u16::MAX },
        Ahead::Stop { stream: 7, incarnation: 8, code: u32::MAX },
    ];

    #[test]
    fn each_message_is_read_as_it_was_written() {
        for message in IN_ORDER {
            assert_eq!(InOrder::decode(&message.encode()), Some(message));
        }
        for message in AHEAD {
            assert_eq!(Ahead::decode(&message.encode()), Some((message, &[][..])));
        }
        let all: Vec<u8> = AHEAD.iter().flat_map(|message| message.encode()).collect();
        let mut rest = &all[..];
        for message in AHEAD {
            let (first, others) = Ahead::decode(rest).expect("a report");
            assert_eq!(first, message);
            rest = others;
        }
    }

    #[test]
    fn other_lengths_and_kinds_are_refused() {
        let all = IN_ORDER.map(InOrder::encode).into_iter().chain(AHEAD.map(Ahead::encode));
        for bytes in all {
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(InOrder::decode(&longer), None);
            for wrong in [&bytes[..bytes.len() - 1], &[]] {
                assert_eq!((InOrder::decode(wrong), Ahead::decode(wrong)), (None, None), "{wrong:?}");
            }
            let is_in_order = InOrder::decode(&bytes).is_some();
            assert_ne!(is_in_order, Ahead::decode(&bytes).is_some(), "each message has one form");
        }
        assert_eq!((InOrder::decode(&[9]), Ahead::decode(&[9, 0, 0])), (None, None));
    }
}
