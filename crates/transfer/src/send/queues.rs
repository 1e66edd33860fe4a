//! Messages of a sender that wait to be sent.

use std::collections::VecDeque;

use anabranch_net::Association;
use tokio::time::Instant;

use super::pace::{Pace, RateLimit};
use crate::error::TransferError;
use crate::framing::{self, OutgoingMessage};
use crate::protocol::{MAX_OPEN_OFFERS, MAX_WINDOW_BLOCKS, Message};

/// Maximum number of control messages that wait to be sent before the peer is read again. A peer that causes answers and does not
/// read them thereby blocks its own transfer. Peers that follow the protocol stay far below this maximum, because each open offer
/// causes at most two messages.
pub(super) const MOST_CONTROL: usize = 4 * MAX_OPEN_OFFERS;

/// Messages that wait to be sent on one association, and its window.
pub(super) struct SendQueues {
    pub(super) control: VecDeque<OutgoingMessage>,
    pub(super) data: VecDeque<OutgoingMessage>,
    pub(super) window: usize,
    pub(super) in_flight: usize,
    pace: Pace,
}

impl SendQueues {
    pub(super) fn new(window_blocks: u32, rate: Option<RateLimit>) -> Self {
        SendQueues {
            control: VecDeque::new(),
            data: VecDeque::new(),
            window: window_blocks.clamp(1, MAX_WINDOW_BLOCKS) as usize,
            in_flight: 0,
            pace: Pace::new(rate, Instant::now()),
        }
    }

    /// Returns `true` if there is room for the answers to one message of the peer.
    pub(super) fn may_hear(&self) -> bool {
        self.control.len() < MOST_CONTROL
    }

    pub(super) fn queue_keepalive(&mut self) {
        // Any queued message also shows that this side is alive.
        if self.control.is_empty() {
            self.send_message(&Message::Alive);
        }
    }

    pub(super) fn send_message(&mut self, message: &Message) {
        self.control.push_back(OutgoingMessage::from(message));
    }

    /// Sends the next message, and returns the bytes of blocks in it. Waits forever if there is none. Cancel-safe: a message that
    /// was not sent stays in its queue.
    pub(super) async fn send_next(&mut self, association: &Association) -> Result<u64, TransferError> {
        if let Some(message) = self.control.front() {
            framing::send(association, message.clone()).await?;
            self.control.pop_front();
            return Ok(0);
        }
        let Some(message) = self.data.front() else { return std::future::pending().await };
        let bytes = message.len();
        self.pace.ready(bytes).await;
        framing::send(association, message.clone()).await?;
        self.data.pop_front();
        self.pace.sent();
        Ok(bytes as u64)
    }
}
