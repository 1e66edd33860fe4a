//! Confirmation of plain packets of the handshake in protected packets, sent and received.

use anabranch_wire::{Chunk, ChunkType, Chunks, Header, InitView, PacketView, PacketWriter};

use crate::association::Association;
use crate::association::packets::PacketContext;
use crate::init::{digest_of, transcript};
use crate::protection::{ChunkProtection, Transcript};
use crate::stats::Discard;

/// Maximum length of an INIT in bytes; padded ones are shorter.
const LONGEST_INIT: usize = 2_048;

/// Transcript of the handshake, for its confirmation.
impl Association {
    /// Records the INIT that is about to be sent.
    pub(crate) fn note_init(&mut self) {
        if self.protection.offer().is_none() {
            return;
        }
        let mut space = [0; LONGEST_INIT];
        let written = PacketWriter::new(&mut space, Header::default()).and_then(|mut writer| {
            self.write_init(&mut writer)?;
            Ok(writer.finish())
        });
        let packet = written.ok().and_then(|length| PacketView::parse(space.get(..length)?).ok());
        let chunk = packet.as_ref().and_then(|packet| packet.chunks().next()?.ok());
        if let Some(Ok(Chunk::Init(init))) = chunk.map(|chunk| chunk.decode()) {
            self.protection.handshakes.init = digest_of(&init);
        }
    }

    /// Returns the digest of the latest INIT and of the INIT ACK that answered it.
    pub(crate) fn transcript_with(&self, ack: &InitView<'_>) -> Transcript {
        transcript(&self.protection.handshakes.init, &digest_of(ack))
    }

    /// Records the answer to an INIT of a peer that opens the association at the same time.
    pub(crate) fn note_answered(&mut self, handshake: Transcript) {
        self.protection.handshakes.note_answered(handshake);
    }
}

/// Received packets.
impl Association {
    /// Checks the confirmation in a record, and returns the chunks behind it. A COOKIE ACK may precede it.
    ///
    /// # Errors
    /// Returns an error if the confirmation contradicts the state of this side. The association has then ended, and the caller drops
    /// the packet.
    pub(crate) fn take_confirmation<'c>(
        &mut self,
        cover: ChunkProtection,
        chunks: Chunks<'c>,
    ) -> Result<Chunks<'c>, Discard> {
        if cover == ChunkProtection::Plain || self.protection.confirming.is_none() {
            return Ok(chunks);
        }
        let mut rest = chunks.clone();
        let mut first = rest.next();
        let leads = matches!(&first, Some(Ok(chunk)) if chunk.kind() == ChunkType::COOKIE_ACK);
        if leads {
            first = rest.next();
        }
        let theirs = match first.and_then(Result::ok).map(|chunk| chunk.decode()) {
            Some(Ok(Chunk::Confirmation(theirs))) => Some(theirs),
            _ => None,
        };
        let ends = self.plain_ends();
        let (confirming, handshakes) = (&mut self.protection.confirming, &self.protection.handshakes);
        let Some(confirming) = confirming else { return Ok(chunks) };
        let taken = match &theirs {
            Some(theirs) => confirming.take(theirs, handshakes, ends),
            None => confirming.take_none(),
        };
        if let Err(why) = taken {
            return Err(self.abort_for_tampering(why));
        }
        self.acknowledge_plain_data();
        Ok(if leads || theirs.is_none() { chunks } else { rest })
    }

    /// Acknowledges all data that was sent in the clear, which the confirmation proves to have arrived.
    fn acknowledge_plain_data(&mut self) {
        let sent = self.protection.boundary.sent().unwrap_or_else(|| self.end_of_sent());
        if self.sender.outstanding().cumulative() < sent.tsn {
            self.acknowledge_up_to(sent.tsn);
        }
    }
}
