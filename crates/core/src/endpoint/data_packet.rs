//! Packets with one DATA chunk as fields in place of bytes.

use anabranch_wire::DataPacket;

use crate::address::{Origin, PathAddress};
use crate::association::is_of_one_host;
use crate::config::{Integrity, PacketForm};
use crate::endpoint::{AssociationId, Endpoint, Handled};
use crate::packet_buffer::PacketBuffer;
use crate::time::Time;

impl Endpoint {
    /// Returns the endpoint with described packets: a packet of later associations with one DATA chunk has
    /// [fields](PacketBuffer::described) in place of bytes, if the endpoint is also [without checksums](Self::without_checksums)
    /// and [without contents](Self::without_contents), and the association without protection. It is for two endpoints of a
    /// simulated network, at less cost and with the same behaviour. The driver passes such a packet to
    /// [`handle_data_packet`](Self::handle_data_packet) of the other endpoint, or [encodes](PacketBuffer::encode) it.
    #[must_use]
    pub fn with_described_packets(self) -> Self {
        Endpoint { form: PacketForm::Described, ..self }
    }

    /// Processes a packet that has no bytes. It is checked as its bytes would be.
    pub fn handle_data_packet(&mut self, now: Time, address: PathAddress, packet: &DataPacket) -> Handled {
        self.now = self.now.max(now);
        self.jar.rotate_if_due(self.now, &mut self.entropy);
        self.table.refresh_peers();
        let origin = Origin { address, bytes: packet.packet_len() };
        if let Some(id) = self.deliver_data_packet(origin, packet) {
            return Handled::Delivered(id);
        }
        // Few packets arrive before the end of the handshake, or out of the blue.
        let mut bytes = PacketBuffer::from(*packet);
        bytes.encode();
        self.handle_datagram(now, address, &bytes)
    }

    /// Delivers a packet to an association that takes it without bytes. Returns `None` if its bytes are needed.
    fn deliver_data_packet(&mut self, origin: Origin, packet: &DataPacket) -> Option<AssociationId> {
        let header = packet.header;
        let is_ordinary = self.integrity == Integrity::Driver
            && header.destination_port == self.config.port
            && header.source_port != 0
            && !origin.address.local.is_multicast()
            && is_of_one_host(origin.address.remote);
        if !is_ordinary {
            return None;
        }
        let id = self.table.by_tag(header.verification_tag)?;
        let association = self
            .table
            .get_mut(id)
            .filter(|association| association.takes_data_packets(header.source_port))?;
        association.clock(self.now);
        association.handle_data_packet(origin, packet.view(), &mut self.discards);
        Some(id)
    }
}
