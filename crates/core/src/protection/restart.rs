//! Keys that are kept for a restart of the association, and that nothing else uses
//! (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026, section "SCTP Restart Considerations").

use anabranch_wire::DtlsRecordHeader;

use super::bounds::{FIRST_EPOCH, KeyError, TAG_BYTES};
use super::cipher::RecordCipher;
use super::context::{ReceiveContext, SendContext};
use crate::stats::Discard;

/// Keys of both directions that have sealed and opened nothing yet.
///
/// The side that has lost the association gives it to [`Endpoint::restart`](crate::Endpoint::restart). The side that has not
/// keeps it with [`Association::install_restart_keys`](crate::Association::install_restart_keys): there it can open what a peer
/// sends that restarts, and seals nothing before such a peer has proved by it that it has the same keys.
#[derive(Debug)]
pub struct RestartContext {
    send: SendContext,
    receive: ReceiveContext,
}

impl RestartContext {
    /// Keys of this epoch, which is that of the primary keys from the same exchange. No two contexts may be made of the same
    /// keys by a side that sends with both: nonces would serve twice.
    ///
    /// # Errors
    /// [`KeyError::Epoch`] for an epoch that no keys of an association have, [`KeyError::TagLength`].
    pub fn new(
        epoch: u64,
        send: Box<dyn RecordCipher>,
        receive: Box<dyn RecordCipher>,
    ) -> Result<Self, KeyError> {
        if epoch < FIRST_EPOCH {
            return Err(KeyError::Epoch { expected: FIRST_EPOCH, found: epoch });
        }
        for found in [send.tag_bytes(), receive.tag_bytes()] {
            if found != TAG_BYTES {
                return Err(KeyError::TagLength { found });
            }
        }
        Ok(RestartContext {
            send: SendContext::new(epoch, send),
            receive: ReceiveContext::new(epoch, receive),
        })
    }

    /// Their epoch.
    pub fn epoch(&self) -> u64 {
        self.send.epoch()
    }

    /// Decrypts a record in place. The number of an authentic one is used up.
    pub(super) fn open<'r>(
        &mut self,
        header: DtlsRecordHeader,
        record: &'r mut [u8],
    ) -> Result<&'r [u8], Discard> {
        self.receive.open(header, record)
    }

    /// The restart takes place: both contexts, the received numbers included, for everything from here on.
    pub(super) fn into_parts(self) -> (SendContext, ReceiveContext) {
        (self.send, self.receive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protection::{CipherError, NullCipher, RECORD_SAMPLE_LEN, RecordLimits};

    /// Its tags are too short.
    #[derive(Debug)]
    struct ShortTag;

    impl RecordCipher for ShortTag {
        fn tag_bytes(&self) -> usize {
            8
        }

        fn limits(&self) -> RecordLimits {
            NullCipher.limits()
        }

        fn seal(&self, _: u64, _: &[u8], _: &mut [u8], _: &mut [u8]) -> Result<(), CipherError> {
            Err(CipherError)
        }

        fn open<'r>(&self, _: u64, _: &[u8], _: &'r mut [u8]) -> Result<&'r [u8], CipherError> {
            Err(CipherError)
        }

        fn mask(&self, _: &[u8; RECORD_SAMPLE_LEN]) -> [u8; 2] {
            [0; 2]
        }
    }

    #[test]
    fn only_keys_that_an_association_can_have_are_taken() {
        let made = RestartContext::new(2, Box::new(NullCipher), Box::new(NullCipher));
        assert_eq!(made.err(), Some(KeyError::Epoch { expected: 3, found: 2 }));
        let made = RestartContext::new(3, Box::new(NullCipher), Box::new(ShortTag));
        assert_eq!(made.err(), Some(KeyError::TagLength { found: 8 }));
        let made = RestartContext::new(3, Box::new(ShortTag), Box::new(NullCipher));
        assert_eq!(made.err(), Some(KeyError::TagLength { found: 8 }));
        let made = RestartContext::new(9, Box::new(NullCipher), Box::new(NullCipher));
        assert_eq!(made.expect("a usual epoch").epoch(), 9);
    }
}
