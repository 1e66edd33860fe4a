//! Control messages of a test: JSON on stream 0 of the association that is measured, so that a test needs no second connection.

use anabranch_net::{Association, Message, SendOptions};
use anyhow::{Context, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::meter::Interval;
use super::plan::Plan;

/// Stream of control messages.
pub(super) const CONTROL_STREAM: u16 = 0;

/// Maximum length of a control message. A message about eight paths has about a twentieth of this length.
const LONGEST: usize = 64 << 10;

/// A control message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Control {
    /// Request of the client for this test.
    Request(Plan),
    /// Answer of a server that is ready and begins.
    Begin,
    /// Answer of a server that rejects the test.
    Refuse {
        /// Reason for the user.
        why: String,
    },
    /// Sender's figures of the latest interval.
    Interval(Interval),
    /// End of the data.
    Done {
        /// User bytes since the start of the test. The receiver waits until it has received them.
        total_bytes: u64,
    },
    /// Receiver's figure, once all data has arrived.
    Received(Figure),
    /// Sender's figures, once all data has arrived.
    Sent(Sent),
}

/// User bytes and messages within a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Figure {
    pub(super) bytes: u64,
    pub(super) messages: u64,
    pub(super) seconds: f64,
}

impl Figure {
    /// Returns the user bits per second.
    pub(super) fn rate_bps(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 * 8.0 / self.seconds } else { 0.0 }
    }
}

/// Figures of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sent {
    /// Data that was sent, without the part left out at the beginning.
    pub(super) figure: Figure,
    /// Bytes of DATA chunks declared lost.
    pub(super) lost_bytes: u64,
    /// Transmissions of chunks after their first.
    pub(super) retransmissions: u64,
}

/// Sends a control message.
pub(super) async fn send_control(association: &Association, control: &Control) -> anyhow::Result<()> {
    let text = serde_json::to_vec(control).context("a control message")?;
    association.send(text, SendOptions { stream: CONTROL_STREAM, ..SendOptions::default() }).await?;
    Ok(())
}

/// Reads a message of stream 0.
pub(super) fn read(message: &Message) -> anyhow::Result<Control> {
    if !message.beginning || !message.ending || message.payload.len() > LONGEST {
        bail!("the peer sent a control message of more than {LONGEST} bytes");
    }
    serde_json::from_slice(&message.payload).map_err(|_| {
        anyhow!(
            "the other side sent no message of `anabranch bench`; run the same version of it on both sides"
        )
    })
}

/// Returns the next message, which has to be a control message.
pub(super) async fn next(association: &Association) -> anyhow::Result<Control> {
    match association.recv().await? {
        None => bail!("the peer closed before the test"),
        Some(message) if message.stream != CONTROL_STREAM => bail!("the peer sent data before the test"),
        Some(message) => read(&message),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::PLAN;
    use super::*;

    fn message(payload: &[u8], beginning: bool) -> Message {
        let payload = payload.to_vec().into();
        Message { stream: 0, ppid: 0, unordered: false, beginning, ending: true, payload }
    }

    #[test]
    fn control_messages_are_read_as_they_were_written() {
        let sent = Sent { lost_bytes: 7, ..Sent::default() };
        for control in
            [Control::Request(PLAN), Control::Begin, Control::Done { total_bytes: 9 }, Control::Sent(sent)]
        {
            let text = serde_json::to_vec(&control).expect("text");
            assert_eq!(read(&message(&text, true)).expect("a message"), control);
        }
    }

    #[test]
    fn other_bytes_are_refused_as_control_message() {
        for (payload, beginning) in
            [(&b"hello"[..], true), (b"{\"request\":{}}", true), (b"\"begin\"", false), (b"\xff", true)]
        {
            assert!(read(&message(payload, beginning)).is_err());
        }
        assert!(read(&message(&vec![b' '; LONGEST + 1], true)).is_err());
    }
}
