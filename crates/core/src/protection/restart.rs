//! Keys that are kept only for a restart of the association (draft-ietf-tsvwg-sctp-dtls-chunk of July 2026, section "SCTP Restart
//! Considerations").

use anabranch_wire::DtlsRecordHeader;

use super::bounds::{FIRST_EPOCH, KeyError, TAG_BYTES};
use super::cipher::RecordCipher;
use super::context::{ReceiveContext, SendContext};
use crate::stats::Discard;

/// Keys of both directions that have sealed and opened no record yet.
///
/// The side that has lost the association passes it to [`Endpoint::restart`](crate::Endpoint::restart). The other side keeps it
/// with [`Association::install_restart_keys`](crate::Association::install_restart_keys): there it opens the records of a peer that
/// restarts, and seals none before such a record has proved that the peer has the same keys.
#[derive(Debug)]
pub struct RestartContext {
    send: SendContext,
    receive: ReceiveContext,
}

impl RestartContext {
    /// Returns the context for keys of this epoch, which is that of the primary keys from the same exchange. A side that sends must
    /// not make two contexts from the same keys: nonces would be used twice.
    ///
    /// # Errors
    /// Returns [`KeyError::Epoch`] for an epoch below that of the first keys, [`KeyError::TagLength`].
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

    /// Returns the epoch of the keys.
    pub fn epoch(&self) -> u64 {
        self.send.epoch()
    }

    /// Decrypts a record in place. An authentic one uses its number up.
    pub(super) fn open<'r>(
        &mut self,
        header: DtlsRecordHeader,
        record: &'r mut [u8],
    ) -> Result<&'r [u8], Discard> {
        self.receive.open(header, record)
    }

    /// Returns both contexts with their state, because the restart takes place.
    pub(super) fn into_parts(self) -> (SendContext, ReceiveContext) {
        (self.send, self.receive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protection::{CipherError, NullCipher, RECORD_SAMPLE_LEN, RecordLimits};

    /// Cipher with tags that are too short.
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
