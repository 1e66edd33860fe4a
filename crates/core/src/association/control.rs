//! Control chunks that wait to be sent, each in a packet of its own.

use std::collections::VecDeque;

use anabranch_wire::{
    COMMON_HEADER_LEN, Cause, Header, NoSpace, PATH_COST_LEN, PacketWriter, StreamId, Tsn, heartbeat_len,
    padded_len,
};

use crate::association::Association;
use crate::association::heartbeat_info::{INFO_BYTES, write_info};
use crate::association::packets::PacketContext;
use crate::association::re_config_answer::{AnswerList, write_answers};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::{PathId, PathState};

/// Control chunk, and the path on which it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Init {
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
    /// HEARTBEAT in a packet of this size.
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
    /// ABORT with the text of a protocol violation, or by the user if the text is empty.
    Abort {
        path: PathId,
        text: &'static str,
    },
    AbortNoUserData {
        path: PathId,
        tsn: u32,
    },
    /// ABORT with the own tag, for a peer that has sent none.
    AbortReflected {
        path: PathId,
    },
    /// ASCONF that waits for its answer.
    Asconf {
        path: PathId,
    },
    /// RE-CONFIG with the request that waits for its answer.
    ReConfig {
        path: PathId,
    },
    /// RE-CONFIG with answers to the peer.
    ReConfigAnswer {
        path: PathId,
        answers: AnswerList,
    },
    /// ABORT for an ASCONF-ACK that answers no ASCONF.
    AbortIllegalAsconfAck {
        path: PathId,
    },
    /// ERROR for an AUTH with an HMAC that was not offered.
    UnsupportedHmac {
        path: PathId,
        hmac_id: u16,
    },
    /// ERROR that returns an unrecognised chunk.
    Unrecognized {
        path: PathId,
        chunk: Vec<u8>,
    },
    /// ERROR for DATA on a stream that does not exist.
    InvalidStream {
        path: PathId,
        stream: StreamId,
    },
}

impl Control {
    pub(crate) fn path(&self) -> PathId {
        match self {
            Control::Init { path }
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
            | Control::ReConfig { path }
            | Control::ReConfigAnswer { path, .. }
            | Control::AbortIllegalAsconfAck { path }
            | Control::UnsupportedHmac { path, .. }
            | Control::Unrecognized { path, .. }
            | Control::InvalidStream { path, .. } => *path,
        }
    }
}

/// Returns the length of a packet with only a HEARTBEAT or its answer.
fn heartbeat_packet_bytes(info_bytes: usize) -> usize {
    COMMON_HEADER_LEN + padded_len(heartbeat_len(info_bytes))
}

/// Maximum number of waiting control chunks: the answers to a flood of HEARTBEATs are limited.
pub(crate) const MAX_CONTROL: usize = 64;

/// Control chunks in the order of sending.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlQueue {
    waiting: VecDeque<Control>,
    /// Empty memory for the copy of the next HEARTBEAT's information.
    spare_info: Vec<u8>,
}

impl ControlQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Adds a chunk of a kind whose number is limited by own timers or state.
    pub(crate) fn push(&mut self, control: Control) {
        self.waiting.push_back(control);
    }

    /// Adds a chunk that must be sent before all others.
    pub(crate) fn push_first(&mut self, control: Control) {
        self.waiting.push_front(control);
    }

    /// Adds a chunk that answers the peer, unless too many wait already.
    pub(crate) fn offer(&mut self, control: Control) {
        if self.waiting.len() < MAX_CONTROL {
            self.waiting.push_back(control);
        }
    }

    pub(crate) fn retain(&mut self, stays: impl FnMut(&Control) -> bool) {
        self.waiting.retain(stays);
    }

    fn pop(&mut self) -> Option<Control> {
        self.waiting.pop_front()
    }

    /// Returns the HEARTBEAT for a path, and its index.
    fn heartbeat_for(&self, id: PathId) -> Option<(usize, &Control)> {
        let waits = |(_, c): &(usize, &Control)| matches!(c, Control::Heartbeat { path, .. } if *path == id);
        self.waiting.iter().enumerate().find(waits)
    }

    /// Copies a HEARTBEAT's information into reused memory.
    pub(crate) fn copy_info(&mut self, info: &[u8]) -> Vec<u8> {
        let mut copy = std::mem::take(&mut self.spare_info);
        copy.extend_from_slice(info);
        copy
    }

    /// Keeps the memory of a HEARTBEAT's information for the next one.
    fn keep_info(&mut self, sent: Control) {
        if let Control::HeartbeatAck { mut info, .. } = sent {
            info.clear();
            self.spare_info = info;
        }
    }
}

impl Association {
    //= docs/rfc9260.txt#section-3
    //# INIT, INIT ACK, and SHUTDOWN COMPLETE chunks MUST NOT be bundled with any other chunk into an SCTP packet.
    //= docs/rfc9260.txt#section-5.1
    //# An INIT or INIT ACK chunk MUST NOT be bundled with any other chunk.
    //= docs/rfc9260.txt#section-5.1
    //# They MUST be the only chunks present in the SCTP packets that carry them.
    //= docs/rfc9260.txt#section-6.10
    //# An endpoint MUST NOT bundle INIT, INIT ACK, or SHUTDOWN COMPLETE chunks with any other chunks.
    pub(crate) fn transmit_control(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        while let Some(control) = self.control.pop() {
            let path = control.path();
            let usual = self.paths.get_facts(path).map(|_| self.packet_room(path))?;
            let bytes = match control {
                Control::MtuProbe { bytes, .. } => self.probe_bytes(bytes),
                // Idle associations send mostly HEARTBEATs and their answers, which may wait in small buffers, as SACKs may.
                Control::Heartbeat { .. } if self.paths.cost_to_report(path).is_some() => {
                    usual.min(heartbeat_packet_bytes(INFO_BYTES + PATH_COST_LEN))
                }
                Control::Heartbeat { .. } => usual.min(heartbeat_packet_bytes(INFO_BYTES)),
                Control::HeartbeatAck { ref info, .. } => usual.min(heartbeat_packet_bytes(info.len())),
                _ => usual,
            };
            let header = match control {
                //= docs/rfc9260.txt#section-3.1
                //# *  A packet containing an INIT chunk MUST have a zero Verification Tag.
                //= docs/rfc9260.txt#section-8.5.1
                //# A) Rules for packets carrying an INIT chunk: *  The sender MUST set the Verification Tag of the packet
                //# to 0.
                //= docs/rfc9260.txt#section-12.3
                //# Accordingly, we stress the requirements, as stated in Section 3.1, that (1) an INIT chunk MUST NOT be
                //# bundled with any other chunk in a packet and (2) a packet containing an INIT chunk MUST have a zero
                //# Verification Tag.
                Control::Init { .. } => Header { verification_tag: 0, ..self.header() },
                Control::AbortReflected { .. } => {
                    Header { verification_tag: self.identity.local_tag, ..self.header() }
                }
                _ => self.header(),
            };
            let leads = matches!(control, Control::CookieAck { .. });
            let lead = |this: &mut Self, writer: &mut PacketWriter<'_>| {
                // A chunk that cannot be written leaves the packet empty.
                let _ = if leads { this.write_control(&control, writer) } else { Ok(()) };
            };
            let written = self.build_packet(bytes, header, buf, lead, |this, writer| {
                let written = leads || this.write_control(&control, writer).is_ok();
                let written = written && !writer.is_empty();
                if written {
                    this.accompany(&control, writer);
                }
                written
            });
            if written == Some(true) {
                self.control.keep_info(control);
                return Some(path);
            }
        }
        None
    }

    /// Adds, behind a COOKIE ACK to an unconfirmed address, the HEARTBEAT that verifies it. Endpoints of simulated networks are not
    /// guarded and send the COOKIE ACK alone.
    //= docs/rfc9260.txt#section-5.4
    //# *  A COOKIE ACK chunk MAY be sent to an UNCONFIRMED address, but it MUST be bundled with a HEARTBEAT chunk
    //# including a nonce.
    fn accompany(&mut self, control: &Control, writer: &mut PacketWriter<'_>) {
        let &Control::CookieAck { path } = control else { return };
        if !self.addresses.is_guarded() || self.paths.facts(path).state != PathState::Unconfirmed {
            return;
        }
        let Some((at, heartbeat)) = self.control.heartbeat_for(path) else { return };
        if self.write_control(heartbeat, writer).is_ok() {
            self.control.waiting.remove(at);
        }
    }

    fn write_control(&self, control: &Control, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        match control {
            Control::Init { .. } => self.write_init(writer),
            Control::CookieAck { .. } => writer.cookie_ack(),
            Control::Heartbeat { path, nonce } => {
                let info = write_info(*nonce, *path);
                match self.paths.cost_to_report(*path) {
                    Some(cost) => writer.heartbeat_with_path_cost(&info, cost.code()),
                    None => writer.heartbeat(&info),
                }
            }
            Control::MtuProbe { path, nonce, bytes } => {
                write_probe(writer, *nonce, *path, self.probe_bytes(*bytes))
            }
            Control::HeartbeatAck { info, .. } => writer.heartbeat_ack(info),
            Control::Shutdown { .. } => {
                let cumulative = self.receiver.as_ref().map_or(0, |r| r.tracker().cumulative());
                writer.shutdown(Tsn::from_unwrapped(cumulative))
            }
            Control::ShutdownAck { .. } => writer.shutdown_ack(),
            //= docs/rfc9260.txt#section-8.5.1
            //# C) Rules for packets carrying a SHUTDOWN COMPLETE chunk: *  When sending a SHUTDOWN COMPLETE chunk, if the
            //# receiver of the SHUTDOWN ACK chunk has a TCB, then the destination endpoint's tag MUST be used and the T
            //# bit MUST NOT be set.
            Control::ShutdownComplete { .. } => writer.shutdown_complete(false),
            //= docs/rfc9260.txt#section-9.1
            //# If the association is aborted on request of the upper layer, a "User-Initiated Abort" error cause (see
            //# Section 3.3.10.12) SHOULD be present in the ABORT chunk.
            Control::Abort { text: "", .. } => writer.abort(false, [Cause::UserInitiatedAbort(b"")]),
            Control::Abort { text, .. } => writer.abort(false, [Cause::ProtocolViolation(text.as_bytes())]),
            Control::AbortNoUserData { tsn, .. } => writer.abort(false, [Cause::NoUserData(Tsn::new(*tsn))]),
            Control::AbortReflected { .. } => writer.abort(true, [Cause::InvalidParameter]),
            Control::Asconf { .. } => self.write_asconf(writer),
            Control::ReConfig { .. } => match &self.stream_changes {
                Some(changes) => changes.write_request(writer),
                None => Ok(()),
            },
            Control::ReConfigAnswer { answers, .. } => write_answers(answers, writer),
            Control::AbortIllegalAsconfAck { .. } => writer.abort(false, [Cause::IllegalAsconfAck]),
            Control::UnsupportedHmac { hmac_id, .. } => {
                writer.error([Cause::UnsupportedHmac { hmac_id: *hmac_id }])
            }
            Control::Unrecognized { chunk, .. } => writer.error([Cause::UnrecognizedChunk(chunk)]),
            Control::InvalidStream { stream, .. } => writer.error([Cause::InvalidStream(*stream)]),
        }
    }

    //= docs/rfc9260.txt#section-3.3.7
    //# DATA chunks MUST NOT be bundled with ABORT chunks.
    //= docs/rfc9260.txt#section-3.3.7
    //# Control chunks (except for INIT, INIT ACK, and SHUTDOWN COMPLETE) MAY be bundled with an ABORT chunk, but they
    //# MUST be placed before the ABORT chunk in the SCTP packet; otherwise, they will be ignored by the receiver.
    //= docs/rfc9260.txt#section-8.5.1
    //# B) Rules for packets carrying an ABORT chunk: *  The endpoint MUST always fill in the Verification Tag field of
    //# the outbound packet with the destination endpoint's tag value if it is known.
    //= docs/rfc9260.txt#section-9.1
    //# The sender MUST fill in the peer's Verification Tag in the outbound packet and MUST NOT bundle any DATA chunk with
    //# the ABORT chunk.
    pub(crate) fn send_abort(&mut self, text: &'static str) {
        let path = self.control_path(None);
        self.control.clear();
        self.control.push(Control::Abort { path, text });
    }

    pub(crate) fn send_reflected_abort(&mut self) {
        let path = self.control_path(None);
        self.control.clear();
        self.control.push(Control::AbortReflected { path });
    }

    pub(crate) fn send_abort_no_user_data(&mut self, tsn: Tsn) {
        let path = self.control_path(None);
        self.control.clear();
        self.control.push(Control::AbortNoUserData { path, tsn: tsn.get() });
    }
}

/// Writes a HEARTBEAT and the padding that makes the packet this long (RFC 4820 section 4).
fn write_probe(writer: &mut PacketWriter<'_>, nonce: u64, path: PathId, bytes: usize) -> Result<(), NoSpace> {
    let before = writer.remaining();
    writer.heartbeat(&write_info(nonce, path))?;
    let written = COMMON_HEADER_LEN + (before - writer.remaining());
    writer.pad(bytes.saturating_sub(written))
}
