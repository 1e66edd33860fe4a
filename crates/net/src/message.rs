//! Messages as the application receives them.

use bytes::Bytes;

/// A message that has arrived, or a piece of one that is larger than the receive buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The stream it came on.
    pub stream: u16,
    /// Payload protocol identifier, as the peer set it.
    pub ppid: u32,
    /// Whether it took no part in the order of its stream.
    pub unordered: bool,
    /// Whether the message begins here.
    pub beginning: bool,
    /// Whether the message ends here; `true` for both is a whole message.
    pub ending: bool,
    /// The user data.
    pub payload: Bytes,
}
