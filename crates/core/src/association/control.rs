//! Control chunks that wait to leave, each in a packet of its own.

use anabranch_wire::{
    COMMON_HEADER_LEN, Cause, Header, NoSpace, PacketWriter, Param, ParamList, RawParam, StreamId, Tsn,
    cookie_echo_len, padded_len,
};

use crate::association::{Association, State};
use crate::path::{PathId, PathState};

/// A control chunk and the path it goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Init {
        path: PathId,
    },
    CookieEcho {
        path: PathId,
    },
    CookieAck {
        path: PathId,
    },
    Heartbeat {
        path: PathId,
        nonce: u64,
    },
    HeartbeatAck {
        path: PathId,
        info: Vec<u8>,
    },
    /// A HEARTBEAT in a packet of this size.
    MtuProbe {
        path: PathId,
        nonce: u64,
        bytes: usize,
    },
    Shutdown {
        path: PathId,
    },
    ShutdownAck {
        path: PathId,
    },
    ShutdownComplete {
        path: PathId,
    },
    /// ABORT with a protocol violation's text, or by the user if it is empty.
    Abort {
        path: PathId,
        text: &'static str,
    },
    AbortNoUserData {
        path: PathId,
        tsn: u32,
    },
    /// ABORT under our own tag, to a peer that has named none.
    AbortReflected {
        path: PathId,
    },
    /// The ASCONF that waits for its answer.
    Asconf {
        path: PathId,
    },
    /// ABORT for an ASCONF-ACK that answers nothing.
    AbortIllegalAsconfAck {
        path: PathId,
    },
    /// ERROR: an AUTH came with an HMAC that was not offered.
    UnsupportedHmac {
        path: PathId,
        hmac_id: u16,
    },
    /// ERROR: an unrecognised chunk is returned.
    Unrecognized {
        path: PathId,
        chunk: Vec<u8>,
    },
    /// ERROR: DATA came on a stream that does not exist.
    InvalidStream {
        path: PathId,
        stream: StreamId,
    },
}

impl Control {
    pub(crate) fn path(&self) -> PathId {
        match self {
            Control::Init { path }
            | Control::CookieEcho { path }
            | Control::CookieAck { path }
            | Control::Heartbeat { path, .. }
            | Control::HeartbeatAck { path, .. }
            | Control::MtuProbe { path, .. }
            | Control::Shutdown { path }
            | Control::ShutdownAck { path }
            | Control::ShutdownComplete { path }
            | Control::Abort { path, .. }
            | Control::AbortNoUserData { path, .. }
            | Control::AbortReflected { path }
            | Control::Asconf { path }
            | Control::AbortIllegalAsconfAck { path }
            | Control::UnsupportedHmac { path, .. }
            | Control::Unrecognized { path, .. }
            | Control::InvalidStream { path, .. } => *path,
        }
    }
}

/// The most control chunks that may wait: a peer that floods HEARTBEATs is not answered without bound.
pub(crate) const MAX_CONTROL: usize = 64;

impl Association {
    pub(crate) fn queue_control(&mut self, control: Control) {
        if self.control.len() < MAX_CONTROL {
            self.control.push_back(control);
        }
    }

    pub(crate) fn transmit_control(&mut self, buf: &mut Vec<u8>) -> Option<PathId> {
        while let Some(control) = self.control.pop_front() {
            let path = control.path();
            let usual = self.paths.get(path.index()).map(|p| p.packet_bytes)?;
            let bytes = match control {
                Control::MtuProbe { bytes, .. } => bytes,
                // A cookie has whatever length its maker gave it. IP fragments what is larger than the path's packets.
                Control::CookieEcho { .. } => usual.max(self.cookie_echo_bytes()),
                _ => usual,
            };
            buf.resize(bytes, 0);
            let header = match control {
                Control::Init { .. } => Header { verification_tag: 0, ..self.header() },
                Control::AbortReflected { .. } => {
                    Header { verification_tag: self.local_tag, ..self.header() }
                }
                _ => self.header(),
            };
            let Ok(mut writer) = PacketWriter::new(buf, header) else { continue };
            if self.write_control(&control, &mut writer).is_ok() && !writer.is_empty() {
                self.accompany(&control, &mut writer);
                let length = writer.finish();
                buf.truncate(length);
                self.keep_info(control);
                return Some(path);
            }
        }
        None
    }

    fn cookie_echo_bytes(&self) -> usize {
        match &self.state {
            State::CookieEchoed { cookie, .. } => {
                COMMON_HEADER_LEN + padded_len(cookie_echo_len(cookie.len()))
            }
            _ => 0,
        }
    }

    /// A COOKIE ACK to an address that nobody has confirmed takes the HEARTBEAT that verifies it along. Simulated networks hold
    /// no strangers, and keep their packets as they are.
    fn accompany(&mut self, control: &Control, writer: &mut PacketWriter<'_>) {
        let &Control::CookieAck { path } = control else { return };
        if !self.guarded || self.facts[path.index()].state != PathState::Unconfirmed {
            return;
        }
        let waits = |c: &Control| matches!(c, Control::Heartbeat { path: other, .. } if *other == path);
        let Some(at) = self.control.iter().position(waits) else { return };
        if self.write_control(&self.control[at], writer).is_ok() {
            self.control.remove(at);
        }
    }

    /// Keeps the memory of a HEARTBEAT's information for the next one.
    fn keep_info(&mut self, sent: Control) {
        if let Control::HeartbeatAck { mut info, .. } = sent {
            info.clear();
            self.spare_info = info;
        }
    }

    fn write_control(&self, control: &Control, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        match control {
            Control::Init { .. } => self.write_init(writer),
            Control::CookieEcho { .. } => match &self.state {
                State::CookieEchoed { cookie, report, .. } => {
                    writer.cookie_echo(cookie)?;
                    report_params(writer, report);
                    Ok(())
                }
                _ => Ok(()),
            },
            Control::CookieAck { .. } => writer.cookie_ack(),
            Control::Heartbeat { path, nonce } => {
                writer.heartbeat(&super::heartbeat::write_info(*nonce, *path))
            }
            Control::MtuProbe { path, nonce, bytes } => {
                super::path_mtu::write_probe(writer, *nonce, *path, *bytes)
            }
            Control::HeartbeatAck { info, .. } => writer.heartbeat_ack(info),
            Control::Shutdown { .. } => {
                let cumulative = self.receiver.as_ref().map_or(0, |r| r.tracker.cumulative());
                writer.shutdown(Tsn::from_unwrapped(cumulative))
            }
            Control::ShutdownAck { .. } => writer.shutdown_ack(),
            Control::ShutdownComplete { .. } => writer.shutdown_complete(false),
            Control::Abort { text: "", .. } => writer.abort(false, [Cause::UserInitiatedAbort(b"")]),
            Control::Abort { text, .. } => writer.abort(false, [Cause::ProtocolViolation(text.as_bytes())]),
            Control::AbortNoUserData { tsn, .. } => writer.abort(false, [Cause::NoUserData(Tsn::new(*tsn))]),
            Control::AbortReflected { .. } => writer.abort(true, [Cause::InvalidParameter]),
            Control::Asconf { .. } => self.write_asconf(writer),
            Control::AbortIllegalAsconfAck { .. } => writer.abort(false, [Cause::IllegalAsconfAck]),
            Control::UnsupportedHmac { hmac_id, .. } => {
                writer.error([Cause::UnsupportedHmac { hmac_id: *hmac_id }])
            }
            Control::Unrecognized { chunk, .. } => writer.error([Cause::UnrecognizedChunk(chunk)]),
            Control::InvalidStream { stream, .. } => writer.error([Cause::InvalidStream(*stream)]),
        }
    }

    pub(crate) fn send_abort(&mut self, text: &'static str) {
        let path = self.control_path(None);
        self.control.clear();
        self.control.push_back(Control::Abort { path, text });
    }

    pub(crate) fn send_reflected_abort(&mut self) {
        let path = self.control_path(None);
        self.control.clear();
        self.control.push_back(Control::AbortReflected { path });
    }

    pub(crate) fn send_abort_no_user_data(&mut self, tsn: Tsn) {
        let path = self.control_path(None);
        self.control.clear();
        self.control.push_back(Control::AbortNoUserData { path, tsn: tsn.get() });
    }
}

/// Reports parameters of the peer's INIT-ACK behind the COOKIE-ECHO, if there are any and they fit (RFC 9260 section 3.2.2).
fn report_params(writer: &mut PacketWriter<'_>, report: &[Vec<u8>]) {
    let params: Vec<_> = report.iter().filter_map(|p| RawParam::parse(p).ok()).map(Param::Unknown).collect();
    if !params.is_empty() {
        // The handshake matters more than the report.
        let _ = writer.error([Cause::UnrecognizedParameters(ParamList::new(&params))]);
    }
}
