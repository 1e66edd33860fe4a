//! Requests and answers of a control socket, one line of JSON each.

use std::net::{IpAddr, SocketAddr};

use anabranch_net::{Limiter, PathState};
use serde::{Deserialize, Serialize};

use crate::link_cost::{LinkCost, Usage};

/// Maximum length of a request in bytes, with its line feed.
pub const MAX_REQUEST_BYTES: usize = 1024;
/// Maximum length of an answer in bytes, with its line feed.
pub const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Maximum number of associations in a report.
pub const MAX_ASSOCIATIONS: usize = 64;
/// Maximum number of forwarded connections in a report.
pub const MAX_CONNECTIONS: usize = 100;

/// Request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// Returns the state of the command: [`Answer::Report`].
    Report,
    /// Returns the metrics in the OpenMetrics text format: [`Answer::Metrics`].
    Metrics,
    /// Takes the paths of a local address out of use: [`Answer::Done`] or [`Answer::Error`].
    TakeOut {
        /// Local address.
        local: IpAddr,
        /// Index of its interface, as in [`PathReport`].
        interface_index: u32,
    },
    /// Takes the paths of a local address back into use: [`Answer::Done`] or [`Answer::Error`].
    TakeBack {
        /// Local address.
        local: IpAddr,
        /// Index of its interface, as in [`PathReport`].
        interface_index: u32,
    },
}

/// Answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// State of the command.
    Report(Box<Report>),
    /// Metrics of all endpoints of the command.
    Metrics {
        /// Page in the OpenMetrics text format.
        text: String,
    },
    /// The order was executed.
    Done,
    /// The request was not executed.
    Error {
        /// Reason, with a remedy.
        why: String,
    },
}

/// State of a command at one time. Counters begin with each path, and times with the command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the command, such as `forward`.
    pub command: String,
    /// Process identifier.
    pub pid: u32,
    /// Scheme that chooses the paths.
    pub scheme: String,
    /// Time since the start of the command in milliseconds.
    pub time_ms: f64,
    /// Associations, at most [`MAX_ASSOCIATIONS`].
    pub associations: Vec<AssociationState>,
    /// Number of further associations.
    pub more_associations: u64,
    /// Local addresses that were taken out of use.
    pub taken_out: Vec<Link>,
    /// Links with a cost or limit.
    pub links: Vec<LinkCost>,
    /// Forwarded connections, if the command forwards any.
    pub connections: Option<Connections>,
}

/// State of an association.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssociationState {
    /// Number of the endpoint. A command that connects again has another one.
    pub endpoint: u64,
    /// Number of the association at its endpoint.
    pub number: u64,
    /// Set if messages may be sent and received.
    pub established: bool,
    /// User bytes not acknowledged yet.
    pub send_buffered_bytes: u64,
    /// User bytes not delivered yet.
    pub recv_buffered_bytes: u64,
    /// Copies of chunks that the scheme sent on a second path.
    pub copies_sent: u64,
    /// State of each path.
    pub paths: Vec<PathReport>,
}

/// State of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Name of the path, as in traces.
    pub path: String,
    /// Local address.
    pub local: IpAddr,
    /// Name of the interface with the local address, if known.
    pub interface: Option<String>,
    /// Index of the interface to which the path is bound; 0 if the routing table decides.
    pub interface_index: u32,
    /// Address of the peer.
    pub remote: SocketAddr,
    /// State of failure detection.
    pub state: State,
    /// Set for the primary path.
    pub primary: bool,
    /// Higher one of the costs that both sides have set.
    pub cost: Usage,
    /// Limit at the latest opportunity to send data.
    pub waits_for: WaitsFor,
    /// Smoothed round-trip time in milliseconds, once measured.
    pub srtt_ms: Option<f64>,
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Bytes sent and neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Bytes of DATA chunks sent, including retransmissions.
    pub sent_bytes: u64,
    /// Bytes of DATA chunks acknowledged.
    pub delivered_bytes: u64,
    /// Bytes of DATA chunks declared lost.
    pub lost_bytes: u64,
    /// Bytes of packets received.
    pub received_bytes: u64,
    /// Number of consecutive errors.
    pub errors: u32,
}

/// Local address with its interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Local address.
    pub local: IpAddr,
    /// Name of the interface, if known.
    pub interface: Option<String>,
    /// Index of the interface; 0 if the routing table decides.
    pub interface_index: u32,
}

/// Forwarded connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Number of open connections.
    pub open: u64,
    /// Number of connections that both ends have closed.
    pub complete: u64,
    /// Number of connections that were reset.
    pub reset: u64,
    /// Number of connections that were not opened.
    pub failed: u64,
    /// Open connections with the most bytes, at most [`MAX_CONNECTIONS`].
    pub list: Vec<Connection>,
}

/// Forwarded connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Number of the connection in this process.
    pub number: u64,
    /// Target of the connection.
    pub target: String,
    /// Time since the connection was opened in seconds.
    pub age_s: u64,
    /// Bytes sent to the peer.
    pub to_peer_bytes: u64,
    /// Bytes received from the peer.
    pub from_peer_bytes: u64,
}

/// State of failure detection of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The peer has not answered on the path yet.
    Unconfirmed,
    /// The path works.
    Active,
    /// The path had errors, and carries no new data.
    PotentiallyFailed,
    /// The path has failed.
    Inactive,
}

impl From<PathState> for State {
    fn from(state: PathState) -> Self {
        match state {
            PathState::Unconfirmed => State::Unconfirmed,
            PathState::Active => State::Active,
            PathState::PotentiallyFailed => State::PotentiallyFailed,
            PathState::Inactive => State::Inactive,
        }
    }
}

/// Limit of a path at its latest opportunity to send data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// Congestion control.
    Acknowledgements,
    /// Pacing of the path.
    Pacing,
    /// Peer's receive window.
    PeerWindow,
    /// Scheduler, which assigned it no data.
    Scheduler,
    /// Application, which has no data.
    Data,
}

impl From<Limiter> for WaitsFor {
    fn from(limiter: Limiter) -> Self {
        match limiter {
            Limiter::Window => WaitsFor::Acknowledgements,
            Limiter::Pacing => WaitsFor::Pacing,
            Limiter::PeerWindow => WaitsFor::PeerWindow,
            Limiter::Scheduler => WaitsFor::Scheduler,
            Limiter::Application => WaitsFor::Data,
        }
    }
}

/// Returns the request in a line.
///
/// # Errors
/// Returns the answer to a line that is no request.
pub(super) fn parse_request(line: &[u8]) -> Result<Request, Answer> {
    serde_json::from_slice(line).map_err(|error| Answer::Error {
        why: format!("the request is not understood: {error}; use the same version of anabranch"),
    })
}

/// Returns a message as a line. An answer that is too long becomes an error.
pub(super) fn line(message: &impl Serialize) -> String {
    let text = serde_json::to_string(message).unwrap_or_default();
    if text.len() < MAX_ANSWER_BYTES {
        return text + "\n";
    }
    let why = "the answer is too long; use --metrics of the command".to_owned();
    serde_json::to_string(&Answer::Error { why }).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_lines_of_json() {
        let take_out = Request::TakeOut { local: IpAddr::from([192, 0, 2, 1]), interface_index: 3 };
        let text = line(&take_out);
        assert_eq!(text, "{\"request\":\"take_out\",\"local\":\"192.0.2.1\",\"interface_index\":3}\n");
        assert_eq!(parse_request(text.trim_end().as_bytes()), Ok(take_out));
        assert_eq!(parse_request(b"{\"request\":\"report\"}"), Ok(Request::Report));
    }

    #[test]
    fn malformed_requests_are_answered_with_an_error() {
        for text in ["", "{}", "\u{0}", "{\"request\":\"halt\"}", "{\"request\":\"take_out\",\"local\":1}"] {
            assert!(matches!(parse_request(text.as_bytes()), Err(Answer::Error { .. })), "{text}");
        }
        assert!(parse_request(&[0xff; 100]).is_err());
    }

    #[test]
    fn answer_above_the_maximum_length_becomes_an_error() {
        let text = line(&Answer::Metrics { text: "x".repeat(MAX_ANSWER_BYTES) });
        assert!(text.len() < 200 && text.contains("too long"), "{text}");
    }
}
