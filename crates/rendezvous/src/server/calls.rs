//! Calls of callers to listeners.

use std::collections::BTreeMap;

use anabranch_core::time::Time;

use super::sockets::{ClientSocket, PortNumber, Sockets};
use crate::message::{CallId, Message, RawKey, Request, Signed};

/// Call of a caller to a listener.
#[derive(Debug)]
pub(super) struct Call {
    keys: (RawKey, RawKey),
    caller: Sockets,
    /// Sockets with which the listener has accepted the call.
    pub(super) listener: Sockets,
    asked: usize,
    /// Time of the latest request of either side.
    pub(super) used: Time,
    /// Relays by the number of the caller's socket.
    pub(super) relays: BTreeMap<u8, PortNumber>,
}

impl Call {
    pub(super) fn new(caller: RawKey, listener: RawKey, now: Time) -> Self {
        Call {
            keys: (caller, listener),
            caller: Sockets::default(),
            listener: Sockets::default(),
            asked: 0,
            used: now,
            relays: BTreeMap::new(),
        }
    }

    pub(super) fn is_of_caller(&self, key: RawKey) -> bool {
        self.keys.0 == key
    }

    pub(super) fn is_of_listener(&self, key: RawKey) -> bool {
        self.keys.1 == key
    }

    /// Records a request of the caller. Returns the number of requests before it.
    pub(super) fn ask(&mut self, socket: ClientSocket) -> usize {
        self.used = socket.seen;
        self.caller.enter(socket);
        self.asked += 1;
        self.asked - 1
    }

    /// Returns the message that reports a request of the caller to the listener.
    pub(super) fn incoming(&self, registration: [u8; 16], call: CallId, signed: &Signed) -> Message {
        debug_assert!(matches!(signed.request, Request::Call { .. }));
        Message::Incoming {
            registration,
            call,
            caller: signed.key,
            cookie: signed.cookie,
            signature: signed.signature,
            addresses: self.caller.addresses(),
        }
    }
}
