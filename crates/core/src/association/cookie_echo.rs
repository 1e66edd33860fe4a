//! COOKIE ECHO: its cookie, and the progress of sending it.

use anabranch_wire::{
    COMMON_HEADER_LEN, Cause, NoSpace, PacketWriter, Param, ParamList, RawParam, cookie_echo_len, padded_len,
};

use crate::path_id::PathId;

/// Maximum number of COOKIE ECHOs sent at a time, each with a part of the key management's first message. A key share against
/// quantum computers needs two. The maximum is below the number of packets with one cookie that a guarded endpoint processes at
/// once, which is five.
const MOST_ECHOES: u32 = 3;

/// Cookie of the peer, and the COOKIE ECHOs that carry it.
#[derive(Clone, Debug)]
pub(crate) struct CookieEcho {
    cookie: Vec<u8>,
    /// Unknown parameters of the INIT-ACK that ask to be reported.
    report: Vec<Vec<u8>>,
    /// Path of the latest COOKIE ECHO, and of the one that is due.
    path: PathId,
    /// Number of COOKIE ECHOs sent since T1-cookie started; `None` if the first one is still due.
    sent: Option<u32>,
}

impl CookieEcho {
    /// Returns the COOKIE ECHO of an INIT-ACK. It is due at once.
    pub(crate) fn new(cookie: Vec<u8>, report: Vec<Vec<u8>>, path: PathId) -> Self {
        CookieEcho { cookie, report, path, sent: None }
    }

    /// Makes a COOKIE ECHO due, because T1-cookie starts.
    pub(crate) fn begin_on(&mut self, path: PathId) {
        (self.path, self.sent) = (path, None);
    }

    pub(crate) fn path(&self) -> PathId {
        self.path
    }

    /// Returns `true` until the first COOKIE ECHO since the start of T1-cookie is sent.
    pub(crate) fn is_due(&self) -> bool {
        self.sent.is_none()
    }

    /// Returns `true` if the number of COOKIE ECHOs permits another one before T1-cookie expires.
    pub(crate) fn may_repeat(&self) -> bool {
        self.sent.is_some_and(|sent| sent < MOST_ECHOES)
    }

    pub(crate) fn note_sent(&mut self) {
        self.sent = Some(self.sent.unwrap_or(0) + 1);
    }

    /// Returns the length of a packet with only the COOKIE ECHO.
    pub(crate) fn packet_bytes(&self) -> usize {
        COMMON_HEADER_LEN + padded_len(cookie_echo_len(self.cookie.len()))
    }

    /// Writes the chunk, and reports unknown parameters of the peer's INIT-ACK behind it if they fit (RFC 9260 section 3.2.2).
    //= docs/rfc9260.txt#section-3.2.2
    //# Any time a COOKIE ECHO chunk is sent in a packet, it MUST be the first chunk.
    //= docs/rfc9260.txt#section-3.3.11
    //# Cookie: variable size This field MUST contain the exact cookie received in the State Cookie
    //# parameter from the previous INIT ACK chunk.
    //= docs/rfc9260.txt#section-5.1
    //# The COOKIE ECHO chunk MAY be bundled with any pending outbound DATA chunks, but it MUST be the
    //# first chunk in the packet and, until the COOKIE ACK chunk is returned, the sender MUST NOT send
    //# any other packets to the peer.
    pub(crate) fn write(&self, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        writer.cookie_echo(&self.cookie)?;
        //= docs/rfc9260.txt#section-3.2.2
        //# If the receiver of any other chunk (e.g., INIT ACK) detects unrecognized parameters and has to
        //# report them according to Section 3.2.1, it SHOULD bundle the ERROR chunk containing the
        //# "Unrecognized Parameters" error cause with the chunk sent in response (e.g., COOKIE ECHO).
        let report = self.report.iter().filter_map(|param| RawParam::parse(param).ok());
        let params: Vec<_> = report.map(Param::Unknown).collect();
        if !params.is_empty() {
            // A report that does not fit is omitted: the handshake has priority.
            let _ = writer.error([Cause::UnrecognizedParameters(ParamList::new(&params))]);
        }
        Ok(())
    }
}
