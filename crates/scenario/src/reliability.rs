//! `reliability` of a flow: a table with a priority, or with a lifetime, a limit of retransmissions or both (RFC 3758, RFC 7496);
//! for a video also limits by the type of frame.

use anabranch_core::Reliability;
use anabranch_core::time::Span;

use crate::document::{Node, Value};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::field::About;
use crate::form::{ANY_TIME, Form, IntegerIn};
use crate::frame_type::FrameType;
use crate::inner::Inner;
use crate::reader::Reader;
use crate::section::{Described, Section as _, inline, section};

/// Range of retransmissions and of priorities.
const COUNT: IntegerIn<u32> = IntegerIn(0..=1_000_000);

section! {
    /// Limit after which a message is abandoned: `max_retransmissions`, `lifetime` or both, or `priority`; for a video also limits
    /// by the type of frame.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct LimitRows {
        /// Maximum number of retransmissions of a chunk; a message is abandoned when one of its chunks is lost after them.
        max_retransmissions: Option<u32> = "max_retransmissions" [optional "no limit"] COUNT;
        /// Time after which a message is abandoned, counted from its hand-over.
        lifetime: Option<Span> = "lifetime" [optional "no limit"] ANY_TIME;
        /// A message is abandoned when the send buffer has no room for a more important one; messages with the largest numbers are
        /// abandoned first.
        priority: Option<u32> = "priority" [optional "no limit"] COUNT;
    }
}

section! {
    /// Limits by the type of the frame.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct FrameLimitRows {
        /// The limit of I frames, `video` only.
        i: Option<Limit> = "I" [optional "delivered"] LIMIT;
        /// The limit of P frames, `video` only.
        p: Option<Limit> = "P" [optional "delivered"] LIMIT;
        /// The limit of B frames, `video` only.
        b: Option<Limit> = "B" [optional "delivered"] LIMIT;
    }
}

/// Limits by the type of the frame. Flows other than videos have the same reliability for all messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameReliability {
    /// Limit of I frames.
    pub i: Reliability,
    /// Limit of P frames.
    pub p: Reliability,
    /// Limit of B frames.
    pub b: Reliability,
}

impl FrameReliability {
    /// Returns the same limit for all types.
    pub fn all(limit: Reliability) -> FrameReliability {
        FrameReliability { i: limit, p: limit, b: limit }
    }

    /// Returns the limit of a type.
    pub fn of(&self, kind: FrameType) -> Reliability {
        match kind {
            FrameType::I => self.i,
            FrameType::P => self.p,
            FrameType::B => self.b,
        }
    }

    /// Returns the limits as the value of a key, which is omitted without limits.
    pub(crate) fn given(self) -> Option<FrameReliability> {
        (self != FrameReliability::default()).then_some(self)
    }
}

/// A given limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit(pub(crate) Reliability);

const LIMIT: Inner<Limit> = Inner::new("Reliability");

impl Described for Limit {
    type Rows = LimitRows;

    fn from_rows(rows: LimitRows, reader: &mut Reader<'_>) -> Option<Limit> {
        let conflict = |message: &str, help: &str| {
            reader.fault_here(Fault::explained(ProblemKind::Conflict, message, help));
            None
        };
        match (rows.max_retransmissions, rows.lifetime, rows.priority) {
            (Some(most), None, None) => Some(Reliability::MaxRetransmissions(most)),
            (None, Some(lifetime), None) => Some(Reliability::Lifetime(lifetime)),
            (Some(max_retransmissions), Some(lifetime), None) => {
                Some(Reliability::LifetimeAndRetransmissions { lifetime, max_retransmissions })
            }
            (None, None, Some(number)) => Some(Reliability::Priority(number)),
            (_, _, Some(_)) => conflict(
                "a message with a priority has no other limit",
                "keep `priority`, or `max_retransmissions` and `lifetime`",
            ),
            (None, None, None) => conflict(
                "the table has no limit",
                "give `max_retransmissions`, `lifetime`, both, or `priority`, or leave the table out",
            ),
        }
        .map(Limit)
    }

    fn to_rows(&self) -> LimitRows {
        let (max_retransmissions, lifetime, priority) = match self.0 {
            Reliability::Full => (None, None, None),
            Reliability::MaxRetransmissions(most) => (Some(most), None, None),
            Reliability::Lifetime(lifetime) => (None, Some(lifetime), None),
            Reliability::LifetimeAndRetransmissions { lifetime, max_retransmissions } => {
                (Some(max_retransmissions), Some(lifetime), None)
            }
            Reliability::Priority(number) => (None, None, Some(number)),
        };
        LimitRows { max_retransmissions, lifetime, priority }
    }
}

/// One limit for all messages, or a table of limits by the type of frame.
pub(crate) struct AnyReliability;

/// Returns `true` if a table has limits by the type of frame.
pub(crate) fn is_by_frame(node: &Node) -> bool {
    let Value::Table(table) = &node.value else { return false };
    FrameType::ALL.iter().any(|kind| table.get(kind.letter()).is_some())
}

impl Form for AnyReliability {
    type Output = FrameReliability;

    fn expected(&self) -> String {
        LIMIT.expected()
    }

    fn read(&self, node: &Node) -> Result<FrameReliability, Fault> {
        Err(Fault::invalid(self.expected(), node.value.to_string()))
    }

    fn write(&self, value: &FrameReliability) -> String {
        if *value == FrameReliability::all(value.i) {
            return LIMIT.write(&Limit(value.i));
        }
        let given = |limit| (limit != Reliability::Full).then_some(Limit(limit));
        inline(&FrameLimitRows { i: given(value.i), p: given(value.p), b: given(value.b) })
    }

    fn about(&self) -> About {
        LIMIT.about()
    }

    fn read_key<'a>(
        &self,
        reader: &Reader<'a>,
        key: &'static str,
        node: &'a Node,
    ) -> Option<FrameReliability> {
        if !is_by_frame(node) {
            return LIMIT.read_key(reader, key, node).map(|limit| FrameReliability::all(limit.0));
        }
        let mut table = reader.as_table(node, reader.key(key))?;
        for field in LimitRows::fields() {
            let why = "beside limits by type: put it into `I`, `P` or `B`, or omit those";
            table.refuse(field.key, why);
        }
        let rows = FrameLimitRows::read_rows(&mut table);
        table.finish();
        let limit = |limit: Option<Limit>| limit.map_or(Reliability::Full, |limit| limit.0);
        rows.map(|rows| FrameReliability { i: limit(rows.i), p: limit(rows.p), b: limit(rows.b) })
    }
}
