//! `messages` of a bulk flow: small messages on a separate stream of the flow's association.

use anabranch_core::time::Span;

use crate::form::{Flag, SizeIn, SpanIn};
use crate::reader::Reader;
use crate::section::{Described, section};

section! {
    /// Small messages on a separate stream of a bulk flow's association.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MessagesBeside {
        /// User data of a message, which starts with its number.
        // The range is from the size of the number to a size that fits into one packet of any MTU.
        size_bytes: u64 = "size" [required] SizeIn(8..=500, "B");
        /// Time between the starts of two messages; a run sends at most 1,000,000 of them.
        interval: Span = "interval" [required] SpanIn(Span::from_millis(1)..=Span::from_secs(3600), "ms");
        /// Ordered delivery.
        ordered: bool = "ordered" [or false] Flag;
    }
}

impl Described for MessagesBeside {
    type Rows = Self;

    fn from_rows(rows: Self, _: &mut Reader<'_>) -> Option<Self> {
        Some(rows)
    }

    fn to_rows(&self) -> Self {
        *self
    }
}
