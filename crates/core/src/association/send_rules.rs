//! Rules for messages of the user.

use crate::error::SendError;
use crate::protection::KEY_MANAGEMENT_PPID;
use crate::send::{Reliability, SendOptions};

/// Rules that decide whether an association can send a message at all, now or later. They change with the handshake, with added
/// streams and with a restart of the peer; a caller without access to the association may check messages with a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendRules {
    pub(crate) streams: u16,
    /// `true` if messages of the key management are not the user's.
    pub(crate) has_key_management: bool,
    /// `false` if the peer is known not to support FORWARD-TSN.
    pub(crate) partial_reliability: bool,
}

impl SendRules {
    /// Returns the number of streams for sending.
    pub fn streams(&self) -> u16 {
        self.streams
    }

    /// Returns `true` if messages may have a limit of reliability: the peer supports FORWARD-TSN, or it is not known yet.
    pub fn partial_reliability(&self) -> bool {
        self.partial_reliability
    }

    /// Checks a message.
    ///
    /// # Errors
    /// Returns [`SendError::Empty`], [`SendError::NoSuchStream`], [`SendError::KeyManagementOnly`] for the payload protocol of the
    /// association's key management, and [`SendError::NoPartialReliability`] for a message with a limit if the peer does not
    /// support FORWARD-TSN.
    pub fn check(&self, payload: &[u8], options: SendOptions) -> Result<(), SendError> {
        //= docs/rfc9260.txt#section-3.3.1
        //# A DATA chunk with a User Data field of length L will have the Length field set to (16 + L) (indicating 16
        //# + L bytes) where L MUST be greater than 0.
        //= docs/rfc9260.txt#section-6.2
        //# An endpoint SHOULD NOT send a DATA chunk with no user data part.
        if payload.is_empty() {
            return Err(SendError::Empty);
        }
        //= docs/rfc9260.txt#section-5.1.1
        //# After the association is initialized, the valid outbound stream identifier range for either endpoint MUST be 0
        //# to min(local OS, remote MIS) - 1.
        //= docs/rfc9260.txt#section-6.5
        //# Every DATA chunk MUST carry a valid stream identifier.
        let (stream, streams) = (options.stream, self.streams);
        if stream >= streams {
            return Err(SendError::NoSuchStream { stream, streams });
        }
        if options.ppid == KEY_MANAGEMENT_PPID && self.has_key_management {
            return Err(SendError::KeyManagementOnly);
        }
        if options.reliability != Reliability::Full && !self.partial_reliability {
            return Err(SendError::NoPartialReliability);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    const RULES: SendRules = SendRules { streams: 2, has_key_management: true, partial_reliability: false };

    #[test]
    fn each_rule_refuses_its_message_and_no_other() {
        let limited = Reliability::Lifetime(Span::from_millis(1));
        let with =
            |stream, ppid, reliability| SendOptions { stream, ppid, reliability, ..Default::default() };
        let cases = [
            (&b""[..], with(0, 0, Reliability::Full), Err(SendError::Empty)),
            (b"x", with(1, 0, Reliability::Full), Ok(())),
            (b"x", with(2, 0, Reliability::Full), Err(SendError::NoSuchStream { stream: 2, streams: 2 })),
            (b"x", with(0, KEY_MANAGEMENT_PPID, Reliability::Full), Err(SendError::KeyManagementOnly)),
            (b"x", with(0, 0, limited), Err(SendError::NoPartialReliability)),
        ];
        for (payload, options, outcome) in cases {
            assert_eq!(RULES.check(payload, options), outcome, "{options:?}");
        }
        let open = SendRules { has_key_management: false, partial_reliability: true, ..RULES };
        assert_eq!(open.check(b"x", with(0, KEY_MANAGEMENT_PPID, limited)), Ok(()));
    }
}
