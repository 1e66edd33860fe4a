//! Protected packets: their content and length, and functions that work as without protection.

use anabranch_core::protection::{CipherError, FIRST_EPOCH, RECORD_SAMPLE_LEN, RecordCipher, RecordLimits};
use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent};
use anabranch_dtls::CipherSuite;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Packet, Side};

use crate::protection::rig::{
    DTLS, ENVELOPE, agreed, arrives, association, cipher, data_flows, install, protected, setup, shape,
};

/// Returns the packets that were sent after the mark.
fn since(duo: &Duo, mark: usize) -> impl Iterator<Item = &Packet> {
    duo.kept.iter().flatten().skip(mark).map(|(_, packet)| packet)
}

fn mark(duo: &Duo) -> usize {
    duo.kept.as_ref().map_or(0, Vec::len)
}

#[test]
fn only_records_are_sent_once_keys_exist() {
    for suite in CipherSuite::ALL {
        let mut duo = agreed(setup(2));
        duo.run(Span::from_secs(2));
        let at = mark(&duo);
        install(&mut duo, FIRST_EPOCH, suite);
        for side in Side::BOTH {
            association(&mut duo, side).require_protection().expect("there are keys");
        }
        data_flows(&mut duo);
        // HEARTBEATs are sent in this time, and then the association ends.
        duo.run(Span::from_secs(100));
        duo.shutdown(Side::A);
        duo.run(Span::from_secs(10));
        assert!(Side::BOTH.into_iter().all(|side| duo.is_over(side)));
        assert!(since(&duo, at).count() > 100);
        for packet in since(&duo, at) {
            assert_eq!(shape(packet), (DTLS, 1));
        }
    }
}

#[test]
fn protected_messages_pass_endpoints_without_contents() {
    let mut duo = protected(Setup { carries_contents: false, ..setup(2) });
    data_flows(&mut duo);
}

#[test]
fn protected_messages_are_unreadable_on_the_wire() {
    let mut duo = protected(setup(1));
    let at = mark(&duo);
    let (payload, _) = duo.flows[0].draft(1_000, 0, false);
    duo.send_all(Side::A, 1_000, 1);
    arrives(&mut duo);
    let window = &payload[100..116];
    assert!(!since(&duo, at).any(|packet| packet.bytes.windows(16).any(|bytes| bytes == window)));
}

#[test]
fn packets_with_envelope_fill_the_path_mtu_exactly() {
    for mtu in [576, 1_280, 1_500, 9_000] {
        let mut duo = protected(setup(1).with(|config| config.mtu_bytes = mtu));
        let at = mark(&duo);
        duo.send_all(Side::A, 100_000, 1);
        arrives(&mut duo);
        let longest = since(&duo, at).map(|packet| packet.bytes.len() + 20).max();
        let longest = longest.expect("packets were sent");
        assert!(longest <= mtu && longest + 4 > mtu, "{longest} of {mtu}");
    }
}

#[test]
fn records_stay_within_the_dtls_limit_on_any_path() {
    const LARGEST: usize = 12 + (1 << 14) + ENVELOPE;
    let mut found = Vec::new();
    for (first, search) in [(65_535, None), (1_200, Some(65_535))] {
        let mut duo = protected(setup(1).with(|config| {
            (config.mtu_bytes, config.mtu_search_up_to_bytes) = (first, search);
            config.recv_buffer_bytes = 1 << 20;
        }));
        duo.run(Span::from_secs(2));
        let at = mark(&duo);
        duo.send_all(Side::A, 200_000, 2);
        arrives(&mut duo);
        found.extend(since(&duo, at).map(|packet| packet.bytes.len()).max());
    }
    assert_eq!(found, [LARGEST; 2]);
}

#[test]
fn mtu_search_accounts_for_the_envelope() {
    for mtu in [1_200, 1_281, 1_400, 1_492, 1_500, 9_000] {
        let mut duo = Duo::new(setup(1).with(|config| {
            config.mtu_bytes = 1_200;
            config.mtu_search_up_to_bytes = Some(1_500);
        }));
        duo.kept = Some(Vec::new());
        duo.link(0).mtu = mtu;
        duo.connect();
        // Some sizes are probed before there are keys, and some after.
        duo.run(Span::from_millis(180));
        install(&mut duo, FIRST_EPOCH, CipherSuite::Aes128Gcm);
        for side in Side::BOTH {
            association(&mut duo, side).require_protection().expect("there are keys");
        }
        duo.run(Span::from_secs(60));
        let at = mark(&duo);
        duo.send_all(Side::A, 100_000, 1);
        arrives(&mut duo);
        let longest = since(&duo, at).map(|packet| packet.bytes.len() + 20).max().expect("packets were sent");
        let most = mtu.min(1_500);
        assert!(longest <= most && longest + 12 + ENVELOPE > most, "{longest} of {mtu}");
        assert_eq!(association(&mut duo, Side::A).statistics().timeouts, 0);
    }
}

#[test]
fn losses_outages_and_disorder_are_repaired_as_without_protection() {
    let mut setup = setup(3);
    (setup.link.loss, setup.link.duplicate, setup.link.reorder) = (20, 20, 100);
    let mut duo = protected(setup);
    for _ in 0..5 {
        data_flows(&mut duo);
    }
    duo.cut(0, true);
    data_flows(&mut duo);
    duo.cut(0, false);
    duo.cut(1, true);
    data_flows(&mut duo);
}

#[test]
fn keys_change_under_data_on_three_paths_and_nothing_is_lost() {
    let mut setup = setup(3);
    (setup.link.loss, setup.link.reorder) = (10, 100);
    let mut duo = protected(setup);
    for epoch in FIRST_EPOCH + 1..FIRST_EPOCH + 30 {
        for side in Side::BOTH {
            duo.send_all(side, 5_000, 20);
        }
        duo.run(Span::from_millis(40));
        let suite = CipherSuite::ALL[epoch as usize % 3];
        install(&mut duo, epoch, suite);
        duo.run(Span::from_secs(5));
        for side in Side::BOTH {
            assert!(association(&mut duo, side).remove_receive_key(epoch - 1));
        }
    }
    arrives(&mut duo);
    for side in Side::BOTH {
        let node = &duo.nodes[side.index()];
        assert_eq!((node.association().key_use().failed, node.ended.is_none()), (0, true));
    }
}

#[test]
fn addresses_change_without_auth() {
    let mut duo = protected(setup(1).with(|config| config.address_changes.asconf = true));
    for side in Side::BOTH {
        assert!(association(&mut duo, side).does_asconf());
        let (now, new) = (duo.now, std::net::IpAddr::from([10, 100, 0, side.index() as u8 + 1]));
        association(&mut duo, side).add_local_address(now, new).expect("there is room");
        duo.settle();
        duo.run(Span::from_secs(5));
        data_flows(&mut duo);
        let from_new = duo.kept.iter().flatten().filter(|(_, packet)| packet.source == new).count();
        assert!(from_new > 10, "it carries data: {from_new}");
        let now = duo.now;
        association(&mut duo, side).remove_local_address(now, new).expect("a path begins there");
        duo.settle();
        duo.run(Span::from_secs(5));
        data_flows(&mut duo);
        for side in Side::BOTH {
            assert!(association(&mut duo, side).statistics().asconfs_received <= 4);
        }
    }
    assert!(association(&mut duo, Side::B).statistics().asconfs_received > 0);
}

/// A cipher that seals few records.
#[derive(Debug)]
struct Few {
    cipher: Box<dyn RecordCipher>,
    /// Number of permitted records.
    allowed: u64,
    /// Record from which on it fails.
    fails_at: u64,
}

impl RecordCipher for Few {
    fn tag_bytes(&self) -> usize {
        self.cipher.tag_bytes()
    }

    fn limits(&self) -> RecordLimits {
        RecordLimits { sealed: self.allowed, ..self.cipher.limits() }
    }

    fn seal(
        &self,
        number: u64,
        header: &[u8],
        content: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), CipherError> {
        if number >= self.fails_at {
            return Err(CipherError);
        }
        self.cipher.seal(number, header, content, tag)
    }

    fn open<'r>(&self, number: u64, header: &[u8], record: &'r mut [u8]) -> Result<&'r [u8], CipherError> {
        self.cipher.open(number, header, record)
    }

    fn mask(&self, sample: &[u8; RECORD_SAMPLE_LEN]) -> [u8; 2] {
        self.cipher.mask(sample)
    }
}

/// Returns a pair whose keys seal this number of records on both sides.
fn with_few_records(allowed: u64, fails_at: u64) -> Duo {
    let mut duo = agreed(setup(1));
    duo.run(Span::from_secs(2));
    for side in Side::BOTH {
        let suite = CipherSuite::Aes128Gcm;
        let (receive, send) = (cipher(suite, FIRST_EPOCH, side.other()), cipher(suite, FIRST_EPOCH, side));
        let association = association(&mut duo, side);
        association.install_receive_key(FIRST_EPOCH, receive).expect("the first epoch");
        let send = Few { cipher: send, allowed, fails_at };
        association.install_send_key(FIRST_EPOCH, Box::new(send)).expect("the first epoch");
        association.require_protection().expect("there are keys");
        assert_eq!(association.key_use().seals_left, allowed);
    }
    duo
}

/// Sends from the first side more than such a cipher seals. The association of this side ends after 30 records without any other
/// packet.
fn sends_thirty_records(allowed: u64, fails_at: u64, reason: AbortReason) {
    let mut duo = with_few_records(allowed, fails_at);
    let at = mark(&duo);
    duo.send_all(Side::A, 100_000, 1);
    duo.run(Span::from_secs(200));
    assert_eq!(duo.nodes[0].ended, Some(AssociationEvent::Aborted(reason)));
    let sent = since(&duo, at).filter(|packet| packet.from == Side::A);
    // The ABORTs are the answer of any host to packets without an association.
    let (records, rest): (Vec<_>, Vec<_>) = sent.partition(|packet| shape(packet) == (DTLS, 1));
    assert_eq!(records.len(), 30);
    assert!(rest.iter().all(|packet| shape(packet) == (6, 1)), "{rest:?}");
}

#[test]
fn association_with_an_exhausted_key_ends_without_plain_packets() {
    sends_thirty_records(30, u64::MAX, AbortReason::KeySpent);
}

#[test]
fn a_packet_that_cannot_be_sealed_does_not_leave_empty() {
    sends_thirty_records(1_000, 30, AbortReason::CipherFailed);
}

#[test]
fn exhausted_key_ends_an_association_at_the_next_packet() {
    let mut duo = with_few_records(30, u64::MAX);
    let sealed = |duo: &Duo| duo.nodes[0].association().key_use().sealed;
    assert!(duo.run_until(Span::from_secs(1_000), |duo| sealed(duo) == 30), "it sends HEARTBEATs");
    assert_eq!((sealed(&duo), &duo.nodes[0].ended), (30, &None));
    assert!(
        duo.run_until(Span::from_secs(100), |duo| duo.nodes[0].ended.is_some()),
        "it has HEARTBEATs to send"
    );
    assert_eq!(duo.nodes[0].ended, Some(AssociationEvent::Aborted(AbortReason::KeySpent)));
}
