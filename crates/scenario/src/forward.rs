//! `kind = "forward"`: connections and datagrams of programs, as `anabranch forward` carries them.

use anabranch_core::time::Span;

use crate::form::{Flag, SizeIn, SpanIn};
use crate::reader::Reader;
use crate::section::{Described, section};

/// Range of the intervals of programs; a run sends at most 1,000,000 requests or datagrams of each.
const INTERVAL: SpanIn = SpanIn(Span::from_millis(1)..=Span::from_secs(3600), "ms");

/// Connections and datagrams of a flow, at least one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Number of downloads without an end, from the gateway.
    pub downloads: u16,
    /// Connection with requests and larger responses.
    pub requests: Option<Exchange>,
    /// Connection with keystrokes and their echoes.
    pub keystrokes: Option<Exchange>,
    /// Datagrams to the gateway.
    pub datagrams: Option<Datagrams>,
}

section! {
    /// Requests of a program and their responses, on one connection of a forward flow.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Exchange {
        /// User data of a request, to the gateway.
        request_bytes: u64 = "request" [or 1] SizeIn(1..=1_000_000_000, "B");
        /// User data of a response. It begins when the request has arrived.
        response_bytes: u64 = "response" [or 1] SizeIn(1..=1_000_000_000, "B");
        /// Time between the starts of two requests, whether or not the earlier one was answered.
        interval: Span = "interval" [required] INTERVAL;
        /// Priority of the connection, as `forward --priority` gives it.
        priority: bool = "priority" [or false] Flag;
    }
}

section! {
    /// Datagrams of a program on a forward flow, such as the voice of a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Datagrams {
        /// User data of a datagram.
        size_bytes: u64 = "size" [required] SizeIn(1..=65_000, "B");
        /// Time between two datagrams.
        interval: Span = "interval" [required] INTERVAL;
    }
}

impl Described for Exchange {
    type Rows = Self;

    fn from_rows(rows: Self, _: &mut Reader<'_>) -> Option<Self> {
        Some(rows)
    }

    fn to_rows(&self) -> Self {
        *self
    }
}

impl Described for Datagrams {
    type Rows = Self;

    fn from_rows(rows: Self, _: &mut Reader<'_>) -> Option<Self> {
        Some(rows)
    }

    fn to_rows(&self) -> Self {
        *self
    }
}
