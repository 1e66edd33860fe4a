//! Packets: header, size, confirmation and seal.

use anabranch_wire::{COMMON_HEADER_LEN, CONFIRMATION_LEN, Header, NoSpace, PacketWriter, padded_len};

use crate::association::{Association, Identity};
use crate::config::{Integrity, PacketForm};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::paths::Paths;
use crate::protection::{ENVELOPE_BYTES, MessageEnd, PacketProtection, PlainEnds, SealError, TAG_BYTES};
use crate::send::Sender;

/// Parts of an association that determine the size, the header and the seal of its packets.
pub(crate) trait PacketContext: Sized {
    fn identity(&self) -> &Identity;
    fn packet_protection(&self) -> &PacketProtection;
    fn packet_protection_mut(&mut self) -> &mut PacketProtection;
    fn sender(&self) -> &Sender;
    fn paths(&self) -> &Paths;

    //= docs/rfc9260.txt#section-3.1
    //# On transmit, the value of the Verification Tag MUST be set to the value of the Initiate Tag received from the peer
    //# endpoint during the association initialization, with the following exceptions:
    //= docs/rfc9260.txt#section-8.5
    //# When sending an SCTP packet, the endpoint MUST fill in the Verification Tag field of the outbound packet with the
    //# tag value in the Initiate Tag parameter of the INIT or INIT ACK chunk received from its peer.
    fn header(&self) -> Header {
        Header {
            source_port: self.identity().local_port,
            destination_port: self.identity().peer_port,
            verification_tag: self.identity().peer_tag,
        }
    }

    /// Returns the bytes that the confirmation takes at the beginning of each packet.
    fn confirmation_bytes(&self) -> usize {
        let pending =
            self.packet_protection().confirming.as_ref().is_some_and(|confirming| !confirming.is_done());
        if pending && self.packet_protection().seals() { CONFIRMATION_LEN } else { 0 }
    }

    /// Returns the bytes of a path's packets without those of the confirmation.
    fn packet_room(&self, id: PathId) -> usize {
        self.paths()[id].packet_bytes - self.confirmation_bytes()
    }

    /// Returns the user bytes that fit one DATA chunk on every path.
    #[inline]
    fn payload_bytes_per_chunk(&self) -> usize {
        self.paths().payload_bytes(self.confirmation_bytes(), self.sender().queue().form().header_len())
    }

    /// Adds the confirmation to a packet that will be sealed, while the peer needs it.
    fn write_confirmation(&self, writer: &mut PacketWriter<'_>) -> Result<(), NoSpace> {
        match &self.packet_protection().confirming {
            Some(confirming) if !confirming.is_done() => {
                writer.confirmation(&confirming.ours(self.plain_ends()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the end of the messages sent so far.
    fn end_of_sent(&self) -> MessageEnd {
        MessageEnd { tsn: self.sender().lowest_unsent() - 1, next_ssn: self.sender().queue().next_ssn(0) }
    }

    fn plain_ends(&self) -> PlainEnds {
        // When the server's confirmation arrives, a client has no key to send with and no more plain messages to send.
        let sent = self.packet_protection().boundary.sent().unwrap_or_else(|| self.end_of_sent());
        PlainEnds { sent: sent.to_wire(), received: self.packet_protection().boundary.received().to_wire() }
    }

    /// Returns `true` if a packet of this path has room for a chunk.
    fn fits(&self, path: PathId, tsn: u64) -> bool {
        COMMON_HEADER_LEN + padded_len(self.sender().chunk_len(tsn)) <= self.paths()[path].packet_bytes
    }

    /// Returns the packet size for a chunk. IP fragments one that was cut for a larger path (RFC 9260 section 6.9).
    //= docs/rfc9260.txt#section-6.9
    //# Instead, if the PMTU has been reduced, then IP fragmentation MUST be used.
    fn packet_size_for(&self, path: PathId, tsn: u64) -> usize {
        let bytes = self.sender().chunk_len(tsn);
        self.packet_room(path).max(COMMON_HEADER_LEN + padded_len(bytes))
    }

    /// Writes a packet of at most `size` bytes into `buf`.
    fn write_packet<T>(
        &mut self,
        size: usize,
        buf: &mut PacketBuffer,
        fill: impl FnOnce(&mut Self, &mut PacketWriter<'_>) -> T,
    ) -> T {
        //= docs/rfc9260.txt#section-6.10
        //# The total size of the resultant SCTP packet MUST be less that or equal to the current PMTU.
        let header = self.header();
        self.build_packet(size, header, buf, |_, _| (), fill).expect("a path's packets hold 512 B and more")
    }

    /// Writes a packet of at most `size` bytes, protected and longer by the envelope if there is a key. Returns `None` without room
    /// for a packet. `lead` writes the chunk, if any, that must be the first one of its packet: it precedes the confirmation.
    fn build_packet<T>(
        &mut self,
        size: usize,
        header: Header,
        buf: &mut PacketBuffer,
        lead: impl FnOnce(&mut Self, &mut PacketWriter<'_>),
        fill: impl FnOnce(&mut Self, &mut PacketWriter<'_>) -> T,
    ) -> Option<T> {
        if !self.packet_protection().seals() {
            let mut writer = self.plain_writer(buf.room(size), header).ok()?;
            lead(self, &mut writer);
            let filled = fill(self, &mut writer);
            match writer.deferred() {
                Some(packet) => buf.describe(packet),
                None => {
                    let (length, unwritten_bytes) = self.finish_plain(writer);
                    buf.keep(length, unwritten_bytes);
                }
            }
            return Some(filled);
        }
        let room = buf.room(size + ENVELOPE_BYTES + self.confirmation_bytes());
        let mut writer = PacketWriter::protected(room, header, TAG_BYTES).ok()?;
        lead(self, &mut writer);
        let leads = !writer.is_empty();
        self.write_confirmation(&mut writer).ok()?;
        let before = writer.len();
        let filled = fill(self, &mut writer);
        let length = if leads || writer.len() > before { self.seal(writer) } else { 0 };
        buf.keep(length, 0);
        Some(filled)
    }

    fn plain_writer<'b>(&self, room: &'b mut [u8], header: Header) -> Result<PacketWriter<'b>, NoSpace> {
        match (self.identity().form, self.identity().integrity) {
            (PacketForm::Described, Integrity::Driver) => PacketWriter::deferring(room, header),
            _ => PacketWriter::new(room, header),
        }
    }

    /// Completes a plain packet. Returns its length, and the number of bytes at its end that were not written.
    fn finish_plain(&self, writer: PacketWriter<'_>) -> (usize, usize) {
        match self.identity().integrity {
            Integrity::Checksum if self.identity().zero_checksum.permits(&writer) => {
                (writer.finish_without_checksum(), 0)
            }
            // A checksum covers all bytes of the packet.
            Integrity::Checksum => (writer.finish(), 0),
            Integrity::Driver => {
                let unwritten_bytes = writer.unwritten_bytes();
                (writer.finish_without_checksum(), unwritten_bytes)
            }
        }
    }

    fn seal(&mut self, writer: PacketWriter<'_>) -> usize {
        let sealed = writer.finish_protected(self.packet_protection().seals_by(), |record| {
            self.packet_protection_mut().sender().ok_or(SealError::NoSpace)?.seal(record)
        });
        // A packet that cannot be protected is not sent.
        sealed.unwrap_or_else(|failure| {
            self.packet_protection_mut().note_failure(failure);
            0
        })
    }
}

impl PacketContext for Association {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn packet_protection(&self) -> &PacketProtection {
        &self.protection
    }

    fn packet_protection_mut(&mut self) -> &mut PacketProtection {
        &mut self.protection
    }

    fn sender(&self) -> &Sender {
        &self.sender
    }

    fn paths(&self) -> &Paths {
        &self.paths
    }
}
