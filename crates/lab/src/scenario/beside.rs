//! `messages` of a bulk flow: small messages that its association carries beside the bulk, on a stream of their own.

use anabranch_core::time::Span;

use super::reader::Reader;
use super::shape::{Flag, SizeIn, SpanIn};

/// From the number that each message carries to what fits one packet of any size.
const SIZE: SizeIn = SizeIn(8..=500);

/// Bounds what a run keeps of them.
const INTERVAL: SpanIn = SpanIn(Span::from_millis(1)..=Span::from_secs(3600));

/// Small messages beside a bulk flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagesBeside {
    /// User data of a message in bytes.
    pub size_bytes: u64,
    /// Time between the starts of two messages.
    pub interval: Span,
    /// Whether they are delivered in order.
    pub ordered: bool,
}

/// Reads them; `Some(None)` if there are none, and `None` if they are wrong.
pub(super) fn read_messages_beside(reader: &mut Reader<'_>) -> Option<Option<MessagesBeside>> {
    let given = reader.has("messages");
    let mut table = reader.table("messages")?;
    if !given {
        return Some(None);
    }
    let size = table.required("size", &SIZE);
    let interval = table.required("interval", &INTERVAL);
    let ordered = table.or("ordered", &Flag, false);
    table.finish();
    Some(Some(MessagesBeside { size_bytes: size?, interval: interval?, ordered: ordered? }))
}
