use std::hash::Hasher as _;

use anabranch_wire::{Chunk, DTLS_CIPHERTEXT_OFFSET, DtlsUse, DtlsView, Header, PacketView, PacketWriter};
use proptest::prelude::*;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use super::super::cipher::{NullCipher, RecordLimits};
use super::*;

const TAG: usize = 16;

/// Cipher that authenticates with SipHash and encrypts by adding the number: enough to detect every mistake around a cipher.
#[derive(Debug)]
struct Toy {
    key: u64,
    limits: RecordLimits,
}

impl Toy {
    fn new(key: u64) -> Box<Self> {
        Box::new(Toy { key, limits: RecordLimits { sealed: 1 << 20, failed: 1 << 20 } })
    }

    fn tag(&self, number: u64, header: &[u8], ciphertext: &[u8]) -> [u8; TAG] {
        let mut hasher = SipHasher13::new_with_keys(self.key, number);
        hasher.write(header);
        hasher.write(ciphertext);
        hasher.finish128().as_bytes()
    }
}

impl RecordCipher for Toy {
    fn tag_bytes(&self) -> usize {
        TAG
    }

    fn limits(&self) -> RecordLimits {
        self.limits
    }

    fn seal(
        &self,
        number: u64,
        header: &[u8],
        content: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), CipherError> {
        content.iter_mut().for_each(|byte| *byte = byte.wrapping_add(number as u8 ^ 0x5A));
        tag.copy_from_slice(&self.tag(number, header, content));
        Ok(())
    }

    fn open<'r>(&self, number: u64, header: &[u8], record: &'r mut [u8]) -> Result<&'r [u8], CipherError> {
        let (content, tag) = record.split_last_chunk_mut::<TAG>().ok_or(CipherError)?;
        if *tag != self.tag(number, header, content) {
            return Err(CipherError);
        }
        content.iter_mut().for_each(|byte| *byte = byte.wrapping_sub(number as u8 ^ 0x5A));
        Ok(content)
    }

    fn mask(&self, sample: &[u8; RECORD_SAMPLE_LEN]) -> [u8; 2] {
        let [a, b, ..] = self.tag(0, &[0; 3], sample);
        [a, b]
    }
}

fn protect(context: &mut SendContext, cookie: &[u8]) -> Result<Vec<u8>, SealError> {
    let mut buf = vec![0xEE; 1_500];
    let mut packet = PacketWriter::protected(&mut buf, Header::default(), context.tag_bytes())?;
    packet.cookie_echo(cookie)?;
    let len = packet.finish_protected(DtlsUse::Primary, |record| context.seal(record))?;
    buf.truncate(len);
    Ok(buf)
}

fn view(packet: &[u8]) -> DtlsView<'_> {
    let chunk = PacketView::parse(packet).unwrap().chunks().next().unwrap().unwrap();
    let Ok(Chunk::Dtls(view)) = chunk.decode() else { panic!("no DTLS") };
    view
}

/// Returns the cookie of a packet.
fn unprotect(context: &mut ReceiveContext, packet: &[u8]) -> Result<Vec<u8>, Discard> {
    let (header, record) = view(packet).record().map_err(|_| Discard::Malformed)?;
    let mut record = record.to_vec();
    let content = context.open(header, &mut record)?;
    let chunk = anabranch_wire::RawChunk::parse(content).unwrap();
    let Ok(Chunk::CookieEcho { cookie }) = chunk.decode() else { panic!("{chunk:?}") };
    Ok(cookie.to_vec())
}

fn pair(epoch: u64) -> (SendContext, ReceiveContext) {
    (SendContext::new(epoch, Toy::new(7)), ReceiveContext::new(epoch, Toy::new(7)))
}

#[test]
fn protected_packet_is_opened_once() {
    let (mut sender, mut receiver) = pair(3);
    for number in 0_u8..200 {
        let packet = protect(&mut sender, &[number]).unwrap();
        assert_eq!(unprotect(&mut receiver, &packet), Ok(vec![number]));
        assert_eq!(unprotect(&mut receiver, &packet), Err(Discard::Replayed));
    }
    assert_eq!((sender.sealed(), receiver.opened(), receiver.failed()), (200, 200, 0));
}

#[test]
fn the_sequence_number_on_the_wire_is_masked() {
    let (mut sender, _) = pair(3);
    let on_wire: Vec<u16> = (0..8)
        .map(|_| view(&protect(&mut sender, b"x").unwrap()).record().unwrap().0.sequence_number)
        .collect();
    assert_ne!(on_wire, (0..8).collect::<Vec<u16>>());
}

#[test]
fn change_of_any_bit_except_ignored_ones_is_refused() {
    let (mut sender, mut receiver) = pair(3);
    let packet = protect(&mut sender, b"a cookie that is rather long").unwrap();
    // From the record's header to the end of the tag; the caller selects the context by the epoch bits.
    let end = 12 + usize::from(u16::from_be_bytes([packet[14], packet[15]]));
    for bit in (12 + 5) * 8 + 8..end * 8 {
        let mut changed = packet.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(unprotect(&mut receiver, &changed), Err(Discard::NotAuthentic), "bit {bit}");
    }
    assert_eq!(receiver.opened(), 0);
    assert!(unprotect(&mut receiver, &packet).is_ok(), "forgeries do not use numbers up");
}

#[test]
fn record_of_another_epoch_or_direction_is_refused() {
    let (mut sender, _) = pair(3);
    let packet = protect(&mut sender, b"x").unwrap();
    let mut other = ReceiveContext::new(3, Toy::new(8));
    assert_eq!(unprotect(&mut other, &packet), Err(Discard::NotAuthentic));
    assert_eq!((other.failed(), other.epoch()), (1, 3));
}

#[test]
fn record_above_the_largest_ciphertext_is_dropped_undecrypted() {
    let (_, mut receiver) = pair(3);
    let header = DtlsRecordHeader::new(3, 0);
    let mut open = |len| receiver.open(header, &mut vec![0; len]).map(<[u8]>::len);
    assert_eq!(open(LARGEST_CIPHERTEXT), Err(Discard::NotAuthentic));
    assert_eq!(open(LARGEST_CIPHERTEXT + 1), Err(Discard::Malformed));
    assert_eq!(receiver.failed(), 1);
}

#[test]
fn records_too_short_for_a_sample_are_not_authentic() {
    let (_, mut receiver) = pair(3);
    for len in 0..RECORD_SAMPLE_LEN + 1 {
        let header = DtlsRecordHeader::new(3, 0);
        assert_eq!(receiver.open(header, &mut vec![0; len]), Err(Discard::NotAuthentic));
    }
}

#[test]
fn a_key_seals_no_more_than_it_may() {
    let limits = RecordLimits { sealed: 3, failed: 2 };
    let mut sender = SendContext::new(3, Box::new(Toy { key: 7, limits }));
    for left in (0..3).rev() {
        protect(&mut sender, b"x").unwrap();
        assert_eq!(sender.left(), left);
    }
    assert_eq!(protect(&mut sender, b"x"), Err(SealError::KeySpent));
}

#[test]
fn key_is_unusable_after_too_many_forgeries() {
    let limits = RecordLimits { sealed: 3, failed: 2 };
    let (mut sender, _) = pair(3);
    let mut receiver = ReceiveContext::new(3, Box::new(Toy { key: 7, limits }));
    let packet = protect(&mut sender, b"x").unwrap();
    let mut forged = packet.clone();
    forged[DTLS_CIPHERTEXT_OFFSET] ^= 1;
    assert_eq!(unprotect(&mut receiver, &forged), Err(Discard::NotAuthentic));
    assert_eq!(unprotect(&mut receiver, &packet), Ok(b"x".to_vec()));
    assert_eq!(unprotect(&mut receiver, &forged), Err(Discard::NotAuthentic));
    let another = protect(&mut sender, b"x").unwrap();
    assert_eq!(unprotect(&mut receiver, &another), Err(Discard::KeySpent));
}

#[test]
fn a_record_older_than_the_window_is_dropped_and_counted() {
    let (mut sender, mut receiver) = pair(3);
    let first = protect(&mut sender, b"first").unwrap();
    let second = protect(&mut sender, b"second").unwrap();
    for _ in 2..32_768 {
        let packet = protect(&mut sender, b"x").unwrap();
        unprotect(&mut receiver, &packet).unwrap();
    }
    // 32,767 behind the highest, and then 32,768.
    let highest = protect(&mut sender, b"x").unwrap();
    unprotect(&mut receiver, &highest).unwrap();
    assert_eq!(unprotect(&mut receiver, &second), Ok(b"second".to_vec()));
    assert_eq!(unprotect(&mut receiver, &first), Err(Discard::NotAuthentic));
    assert_eq!(receiver.failed(), 1);
}

#[test]
fn a_null_cipher_makes_records_as_long_as_the_others() {
    let (mut toy, _) = pair(3);
    let mut null = SendContext::new(3, Box::new(NullCipher));
    let mut receiver = ReceiveContext::new(3, Box::new(NullCipher));
    for cookie in [&b""[..], b"x", b"a longer one"] {
        let packet = protect(&mut null, cookie).unwrap();
        assert_eq!(packet.len(), protect(&mut toy, cookie).unwrap().len());
        assert_eq!(unprotect(&mut receiver, &packet), Ok(cookie.to_vec()));
    }
}

#[test]
fn a_record_without_content_is_malformed() {
    let (mut sender, mut receiver) = pair(3);
    let mut buf = [0; 100];
    let packet = PacketWriter::protected(&mut buf, Header::default(), TAG).unwrap();
    let sealed = packet.finish_protected(DtlsUse::Primary, |record| {
        record.content.fill(0);
        sender.seal(record)
    });
    let len = sealed.unwrap();
    let (header, record) = view(&buf[..len]).record().unwrap();
    assert_eq!(receiver.open(header, &mut record.to_vec()), Err(Discard::Malformed));
}

proptest! {
    #[test]
    fn any_order_within_reach_is_taken_once_each(seed: u64, count in 1_usize..300, twice in 0_usize..300) {
        let (mut sender, mut receiver) = pair(5);
        let mut packets: Vec<_> =
            (0..count).map(|n| (n, protect(&mut sender, &n.to_be_bytes()).unwrap())).collect();
        packets.push(packets[twice % count].clone());
        // A shuffle by sorting on a hash of the position.
        let order = |at: usize| {
            let mut hasher = SipHasher13::new_with_keys(seed, at as u64);
            hasher.write(&at.to_be_bytes());
            hasher.finish()
        };
        let mut order: Vec<_> = (0..packets.len()).map(|at| (order(at), at)).collect();
        order.sort_unstable();
        let mut taken = vec![0; count];
        for (_, at) in order {
            let (n, packet) = &packets[at];
            match unprotect(&mut receiver, packet) {
                Ok(cookie) => {
                    prop_assert_eq!(cookie, n.to_be_bytes());
                    taken[*n] += 1;
                }
                Err(reason) => prop_assert_eq!(reason, Discard::Replayed),
            }
        }
        prop_assert!(taken.iter().all(|&times| times == 1));
    }

    #[test]
    fn random_bytes_do_not_panic(epoch: u64, number: u16, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut receiver = ReceiveContext::new(epoch, Toy::new(7));
        prop_assert!(receiver.open(DtlsRecordHeader::new(epoch, number), &mut bytes.clone()).is_err());
        let mut receiver = ReceiveContext::new(epoch, Box::new(NullCipher));
        let _ = receiver.open(DtlsRecordHeader::new(epoch, number), &mut bytes.clone());
    }
}
