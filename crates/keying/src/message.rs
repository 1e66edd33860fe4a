//! Messages of the key management (draft-porfiri-tsvwg-sctp-dtls-handshake, section "TLS Message Transport").

use crate::error::KeyingError;

/// Bit that distinguishes control messages from TLS records.
const CONTROL: u8 = 0x80;

/// Control message "Protection Established".
const PROTECTION_ESTABLISHED: u8 = 1;

/// Maximum length of a message in bytes. A handshake with a chain of large certificates and post-quantum keys needs less.
pub(crate) const LONGEST_MESSAGE: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content<'m> {
    /// One or more complete TLS records.
    Records(&'m [u8]),
    /// The sender protects its packets with the keys of this epoch and accepts no others.
    ProtectionEstablished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'m> {
    /// Low seven bits of the epoch that the message concerns.
    epoch_bits: u8,
    pub(crate) content: Content<'m>,
}

impl<'m> Message<'m> {
    pub(crate) fn new(epoch: u64, content: Content<'m>) -> Self {
        Message { epoch_bits: epoch as u8 & !CONTROL, content }
    }

    pub(crate) fn is_about(&self, epoch: u64) -> bool {
        self.epoch_bits == epoch as u8 & !CONTROL
    }

    pub(crate) fn parse(bytes: &'m [u8]) -> Result<Self, KeyingError> {
        if bytes.len() > LONGEST_MESSAGE {
            return Err(KeyingError::TooLong);
        }
        let (&first, payload) = bytes.split_first().ok_or(KeyingError::Malformed)?;
        let content = match (first & CONTROL != 0, payload) {
            (_, []) => return Err(KeyingError::Malformed),
            (false, records) => Content::Records(records),
            (true, [PROTECTION_ESTABLISHED]) => Content::ProtectionEstablished,
            (true, _) => return Err(KeyingError::Malformed),
        };
        Ok(Message { epoch_bits: first & !CONTROL, content })
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        match self.content {
            Content::Records(records) => [&[self.epoch_bits], records].concat(),
            Content::ProtectionEstablished => vec![CONTROL | self.epoch_bits, PROTECTION_ESTABLISHED],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_laid_out_as_in_the_draft() {
        let records = Message::new(3, Content::Records(&[22, 3]));
        assert_eq!(records.to_bytes(), [0x03, 22, 3]);
        let established = Message::new(128 + 5, Content::ProtectionEstablished);
        assert_eq!(established.to_bytes(), [0x85, 0x01]);
        for message in [records, established] {
            assert_eq!(Message::parse(&message.to_bytes()), Ok(message));
        }
    }

    #[test]
    fn a_message_is_about_the_epoch_that_ends_in_its_bits() {
        let message = Message::new(130, Content::ProtectionEstablished);
        assert!(message.is_about(130) && message.is_about(2) && !message.is_about(3));
    }

    #[test]
    fn invalid_message_is_refused() {
        for bad in [&[][..], &[3], &[0x83], &[0x83, 2], &[0x83, 1, 0]] {
            assert_eq!(Message::parse(bad), Err(KeyingError::Malformed), "{bad:?}");
        }
        assert!(Message::parse(&[3; LONGEST_MESSAGE]).is_ok());
        assert_eq!(Message::parse(&[3; LONGEST_MESSAGE + 1]), Err(KeyingError::TooLong));
    }
}
