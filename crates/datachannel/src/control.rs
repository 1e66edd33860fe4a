//! Messages of the Data Channel Establishment Protocol (RFC 8832 section 5).

use crate::channel::{ChannelReliability, Settings};
use crate::error::Malformed;

const OPEN: u8 = 0x03;
const ACK: u8 = 0x02;

/// Bit of a channel type that is set for unordered messages.
const UNORDERED: u8 = 0x80;
const RELIABLE: u8 = 0x00;
const REXMIT: u8 = 0x01;
const TIMED: u8 = 0x02;

/// Bytes of DATA_CHANNEL_OPEN before label and protocol.
pub(crate) const OPEN_HEADER_BYTES: usize = 12;

/// Control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// DATA_CHANNEL_OPEN
    Open(Settings),
    /// DATA_CHANNEL_ACK
    Ack,
}

impl Control {
    /// Label and protocol have 65,535 bytes at most.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Control::Open(settings) = self else { return vec![ACK] };
        let (kind, parameter) = match settings.reliability {
            ChannelReliability::Full => (RELIABLE, 0),
            ChannelReliability::MaxRetransmissions(count) => (REXMIT, count),
            ChannelReliability::LifetimeMs(ms) => (TIMED, ms),
        };
        let order = if settings.ordered { 0 } else { UNORDERED };
        let mut bytes = vec![OPEN, kind | order];
        bytes.extend(settings.priority.to_be_bytes());
        bytes.extend(parameter.to_be_bytes());
        bytes.extend((settings.label.len() as u16).to_be_bytes());
        bytes.extend((settings.protocol.len() as u16).to_be_bytes());
        bytes.extend(settings.label.as_bytes());
        bytes.extend(settings.protocol.as_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes {
            [] => Err(Malformed::Short),
            // RFC 8832 section 5.2 defines one byte. pion sends three more.
            [ACK, ..] => Ok(Control::Ack),
            [OPEN, ..] => Ok(Control::Open(decode_open(bytes)?)),
            [_, ..] => Err(Malformed::UnknownType),
        }
    }
}

fn decode_open(bytes: &[u8]) -> Result<Settings, Malformed> {
    let (header, names) = bytes.split_first_chunk::<OPEN_HEADER_BYTES>().ok_or(Malformed::Short)?;
    let [_, kind, p0, p1, r0, r1, r2, r3, l0, l1, q0, q1] = *header;
    let parameter = u32::from_be_bytes([r0, r1, r2, r3]);
    let reliability = match kind & !UNORDERED {
        RELIABLE => ChannelReliability::Full,
        REXMIT => ChannelReliability::MaxRetransmissions(parameter),
        TIMED => ChannelReliability::LifetimeMs(parameter),
        _ => return Err(Malformed::UnknownChannelType),
    };
    let label_bytes = usize::from(u16::from_be_bytes([l0, l1]));
    let protocol_bytes = usize::from(u16::from_be_bytes([q0, q1]));
    let (label, protocol) = names.split_at_checked(label_bytes).ok_or(Malformed::Short)?;
    if protocol.len() != protocol_bytes {
        return Err(if protocol.len() < protocol_bytes { Malformed::Short } else { Malformed::Long });
    }
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| Malformed::NoText);
    Ok(Settings {
        label: text(label)?,
        protocol: text(protocol)?,
        ordered: kind & UNORDERED == 0,
        reliability,
        priority: u16::from_be_bytes([p0, p1]),
    })
}

/// Checks that a message that is read is written again with the same meaning.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(bytes: &[u8]) {
    if let Ok(read) = Control::decode(bytes) {
        assert_eq!(Control::decode(&read.encode()), Ok(read));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings() -> impl Strategy<Value = Settings> {
        let reliability = prop_oneof![
            Just(ChannelReliability::Full),
            any::<u32>().prop_map(ChannelReliability::MaxRetransmissions),
            any::<u32>().prop_map(ChannelReliability::LifetimeMs),
        ];
        (".{0,40}", ".{0,40}", any::<bool>(), reliability, any::<u16>()).prop_map(
            |(label, protocol, ordered, reliability, priority)| Settings {
                label,
                protocol,
                ordered,
                reliability,
                priority,
            },
        )
    }

    proptest! {
        #[test]
        fn opening_is_read_as_written_and_no_prefix_of_it(settings in settings()) {
            let bytes = Control::Open(settings.clone()).encode();
            prop_assert_eq!(Control::decode(&bytes), Ok(Control::Open(settings)));
            for length in 0..bytes.len() {
                prop_assert_eq!(Control::decode(&bytes[..length]), Err(Malformed::Short));
            }
            prop_assert_eq!(Control::decode(&[&bytes[..], &[0]].concat()), Err(Malformed::Long));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Control::decode(&bytes);
        }
    }

    #[test]
    fn opening_of_a_browser_is_read() {
        // An unordered channel "chat" of protocol "v1" with three retransmissions and normal priority.
        let bytes = b"\x03\x81\x01\x00\x00\x00\x00\x03\x00\x04\x00\x02chatv1";
        let settings = Settings {
            protocol: "v1".to_owned(),
            ordered: false,
            reliability: ChannelReliability::MaxRetransmissions(3),
            ..Settings::new("chat")
        };
        assert_eq!(Control::decode(bytes), Ok(Control::Open(settings)));
    }

    #[test]
    fn bytes_after_an_acknowledgement_are_ignored() {
        assert_eq!(Control::Ack.encode(), [ACK]);
        assert_eq!(Control::decode(&[ACK, 0, 0, 0]), Ok(Control::Ack));
    }

    #[test]
    fn wrong_types_and_names_are_refused() {
        assert_eq!(Control::decode(&[7]), Err(Malformed::UnknownType));
        let mut bytes = Control::Open(Settings::new("a")).encode();
        bytes[1] = 0x03;
        assert_eq!(Control::decode(&bytes), Err(Malformed::UnknownChannelType));
        bytes[1] = 0;
        bytes[12] = 0xff;
        assert_eq!(Control::decode(&bytes), Err(Malformed::NoText));
    }
}
