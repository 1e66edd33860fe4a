use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

use anabranch_core::protection::SendContext;
use anabranch_core::time::Time;
use anabranch_dtls::{CipherSuite, KeyMaterial};
use anabranch_keying::{Direction, KeyLog as _, LoggedKeys};
use anabranch_sim::Encapsulation;
use anabranch_wire::{ChunkType, DtlsUse, Header, PacketWriter};
use etherparse::PacketBuilder;

use super::*;
use crate::file::KeyLogFile;

const PORTS: Encapsulation = Encapsulation::Udp { source_port: 9899, destination_port: 40_000 };
const HEADER: Header = Header { source_port: 1, destination_port: 2, verification_tag: 0x1234_5678 };

/// Returns a packet with a chunk of an unknown type and this value.
fn plain(value: u8) -> Vec<u8> {
    let mut bytes = [0; 64];
    let mut writer = PacketWriter::new(&mut bytes, HEADER).expect("room");
    writer.raw_parts(ChunkType(0xFE), 0, &[value; 4]).expect("room");
    let length = writer.finish();
    bytes[..length].to_vec()
}

fn sealed(context: &mut SendContext, value: u8) -> Vec<u8> {
    let mut bytes = [0; 128];
    let mut writer = PacketWriter::protected(&mut bytes, HEADER, context.tag_bytes()).expect("room");
    writer.raw_parts(ChunkType(0xFE), 0, &[value; 4]).expect("room");
    let length = writer.finish_protected(DtlsUse::Primary, |record| context.seal(record)).expect("sealed");
    bytes[..length].to_vec()
}

/// Logs keys derived from a byte and returns their send context.
fn logged(log: &KeyLogFile, suite: CipherSuite, byte: u8, epoch: u64) -> SendContext {
    let (key, iv) = (vec![byte; suite.key_len()], [byte; KeyMaterial::IV_LEN]);
    log.log(Direction::FromClient, &LoggedKeys { suite, key: &key, sequence_number_key: &key, iv: &iv });
    let material = KeyMaterial::new(suite, &key, &key, &iv).expect("lengths of the suite");
    SendContext::new(epoch, material.cipher())
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Files { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self) -> KeyLogFile {
        KeyLogFile::open(&self.path("keys"), |error| panic!("{error}")).expect("a file")
    }

    fn capture(&self, packets: &[Vec<u8>]) {
        let mut writer = PcapngWriter::new(Vec::new()).expect("memory");
        let interface = writer.add_interface("eth0").expect("memory");
        for (at, payload) in packets.iter().enumerate() {
            let source = IpAddr::from([10, 0, 0, 1]);
            let destination = IpAddr::from([10, 0, 0, 2]);
            let datagram = Datagram { source, destination, encapsulation: PORTS, payload };
            writer.packet(interface, Time::from_nanos(at as u64), datagram, None).expect("memory");
        }
        fs::write(self.path("capture"), writer.finish().expect("memory")).expect("written");
    }

    fn decrypt(&self) -> Result<Decrypted, KeyLogError> {
        decrypt(&self.path("capture"), &self.path("keys"), &self.path("out"))
    }

    /// Returns the packets of the output.
    fn packets(&self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let read = capture::read(&self.path("out"), |found| {
            if let Found::Packet(packet) = found {
                assert_eq!(
                    (packet.encapsulation, packet.time),
                    (PORTS, Time::from_nanos(packets.len() as u64))
                );
                packets.push(packet.sctp.to_vec());
            }
            Ok(())
        });
        read.expect("a capture");
        packets
    }
}

#[test]
fn packets_are_as_if_they_had_not_been_protected() {
    for suite in CipherSuite::ALL {
        let files = Files::new();
        let log = files.log();
        let mut contexts = [(1, 3), (2, 3), (3, 4)].map(|(byte, epoch)| logged(&log, suite, byte, epoch));
        let mut packets = vec![plain(0)];
        packets.extend((1..4).flat_map(|value| contexts.each_mut().map(|context| sealed(context, value))));
        // Reordered, with one duplicate.
        packets.swap(1, 7);
        packets.push(packets[4].clone());
        files.capture(&packets);
        let done = files.decrypt().expect("decrypted");
        assert_eq!(done, Decrypted { opened: 10, plain: 1, ..Decrypted::default() }, "{suite:?}");
        let values = [0, 3, 1, 1, 2, 2, 2, 1, 3, 3, 2];
        assert_eq!(files.packets(), values.map(plain));
    }
}

#[test]
fn a_capture_may_begin_when_many_records_were_sealed() {
    let files = Files::new();
    let mut context = logged(&files.log(), CipherSuite::Aes128Gcm, 1, 3);
    for _ in 0..(2 * 65_536 + 9) {
        sealed(&mut context, 0);
    }
    files.capture(&[sealed(&mut context, 7), sealed(&mut context, 8)]);
    assert_eq!(files.decrypt().expect("decrypted").opened, 2);
    assert_eq!(files.packets(), [7, 8].map(plain));
}

#[test]
fn packet_without_a_matching_key_is_copied_unchanged() {
    let files = Files::new();
    let log = files.log();
    let mut ours = logged(&log, CipherSuite::Aes128Gcm, 1, 3);
    let elsewhere = Files::new();
    let mut theirs = logged(&elsewhere.log(), CipherSuite::Aes128Gcm, 2, 3);
    let mut changed = sealed(&mut ours, 1);
    *changed.last_mut().expect("a tag") ^= 1;
    // A change of the padding after the tag would not be detected.
    let at = changed.len() - 8;
    changed[at] ^= 1;
    let packets = [sealed(&mut theirs, 1), changed, sealed(&mut ours, 2)];
    files.capture(&packets);
    assert_eq!(
        files.decrypt().expect("decrypted"),
        Decrypted { opened: 1, closed: 2, ..Decrypted::default() }
    );
    assert_eq!(files.packets(), [packets[0].clone(), packets[1].clone(), plain(2)]);
}

#[test]
fn files_that_are_something_else_are_named() {
    let files = Files::new();
    logged(&files.log(), CipherSuite::Aes128Gcm, 1, 3);
    let error = || files.decrypt().expect_err("refused").to_string();
    assert!(error().contains("capture: "), "{}", error());
    fs::write(files.path("capture"), "text").expect("written");
    assert!(error().contains("capture: no capture in the format pcapng or pcap"), "{}", error());
    files.capture(&[plain(0)]);
    let mut bytes = fs::read(files.path("capture")).expect("a file");
    bytes.truncate(bytes.len() - 3);
    fs::write(files.path("capture"), &bytes).expect("written");
    assert!(error().contains("ends within a block"), "{}", error());
    files.capture(&[plain(0)]);
    fs::write(files.path("keys"), "# nothing\n").expect("written");
    assert!(error().contains("keys: no keys of associations"), "{}", error());
    fs::write(files.path("keys"), "\nSCTP_DTLS_FROM_CLIENT 1301\n").expect("written");
    assert!(error().contains("keys:2: "), "{}", error());
}

#[test]
fn the_output_never_takes_the_place_of_the_capture_or_the_key_log() {
    let files = Files::new();
    let mut context = logged(&files.log(), CipherSuite::Aes128Gcm, 1, 3);
    files.capture(&[sealed(&mut context, 1)]);
    fs::hard_link(files.path("keys"), files.path("again")).expect("linked");
    // Outside Unix only paths are compared, so the hard link is not detected.
    let cases = [("capture", "capture"), ("keys", "keys"), ("again", "keys")];
    for (output, input) in cases.into_iter().filter(|(output, _)| cfg!(unix) || *output != "again") {
        let before = fs::read(files.path(input)).expect("a file");
        let ended = decrypt(&files.path("capture"), &files.path("keys"), &files.path(output));
        let text = ended.expect_err("refused").to_string();
        assert!(text.contains("the same file") && text.contains("name another file"), "{text}");
        assert_eq!(fs::read(files.path(input)).expect("a file"), before);
    }
}

#[test]
fn an_output_that_is_there_is_replaced_whole() {
    let files = Files::new();
    let mut context = logged(&files.log(), CipherSuite::Aes128Gcm, 1, 3);
    files.capture(&[sealed(&mut context, 1)]);
    fs::write(files.path("out"), vec![7; 1 << 16]).expect("written");
    files.decrypt().expect("decrypted");
    assert_eq!(files.packets(), [plain(1)]);
}

#[cfg(unix)]
#[test]
fn decrypted_capture_is_private_and_may_go_to_a_pipe() {
    use std::os::unix::fs::PermissionsExt as _;
    let files = Files::new();
    let mut context = logged(&files.log(), CipherSuite::Aes128Gcm, 1, 3);
    files.capture(&[sealed(&mut context, 1)]);
    files.decrypt().expect("decrypted");
    assert_eq!(fs::metadata(files.path("out")).expect("there").permissions().mode() & 0o777, 0o600);
    let done = decrypt(&files.path("capture"), &files.path("keys"), Path::new("/dev/null"));
    assert_eq!(done.expect("decrypted").opened, 1);
}

/// Flips one bit in every byte of a small capture, and expects no panic and no long run.
#[test]
fn a_damaged_capture_is_read_or_refused() {
    let files = Files::new();
    let mut context = logged(&files.log(), CipherSuite::Aes128Gcm, 1, 3);
    files.capture(&[plain(0), sealed(&mut context, 1)]);
    let whole = fs::read(files.path("capture")).expect("a file");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(files.path("capture"), &bytes).expect("written");
        let _ = files.decrypt();
    }
}

/// Returns an SCTP packet in UDP with an IPv4 header.
fn in_ip(sctp: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(9899, 40_000);
    builder.write(&mut packet, sctp).expect("memory");
    packet
}

/// Byte order of a capture.
#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn words(self, words: &[u32]) -> Vec<u8> {
        let bytes = |word: &u32| match self {
            Order::Little => word.to_le_bytes(),
            Order::Big => word.to_be_bytes(),
        };
        words.iter().flat_map(bytes).collect()
    }
}

/// Returns a capture in pcap format: magic number, link type, and packets with their lengths on the wire.
fn pcap(order: Order, magic: u32, link: u32, packets: &[(Vec<u8>, usize)]) -> Vec<u8> {
    let mut bytes = order.words(&[magic]);
    bytes.extend(match order {
        Order::Little => [2, 0, 4, 0],
        Order::Big => [0, 2, 0, 4],
    });
    bytes.extend(order.words(&[0, 0, 262_144, link]));
    for (packet, length) in packets {
        bytes.extend(order.words(&[7, 5, packet.len() as u32, *length as u32]));
        bytes.extend(packet);
    }
    bytes
}

/// Returns a block of pcapng.
fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = 12 + padded as u32;
    let padding = vec![0; padded - body.len()];
    [&order.words(&[kind, length])[..], body, &padding, &order.words(&[length])].concat()
}

/// Returns a section whose interfaces have these link types. Each interface has one packet, and the first also one without time.
fn section(order: Order, links: &[u16], frame: impl Fn(u16) -> Vec<u8>) -> Vec<u8> {
    let half = |value: u16| match order {
        Order::Little => value.to_le_bytes(),
        Order::Big => value.to_be_bytes(),
    };
    let header = [&order.words(&[0x1A2B_3C4D])[..], &half(1), &half(0), &[0xFF; 8]].concat();
    let mut bytes = block(order, 0x0A0D_0D0A, &header);
    for link in links {
        bytes.extend(block(order, 1, &[&half(*link)[..], &[0; 2], &order.words(&[0])].concat()));
    }
    for (number, link) in links.iter().enumerate() {
        let packet = frame(*link);
        let length = packet.len() as u32;
        let body = [&order.words(&[number as u32, 0, 9, length, length])[..], &packet].concat();
        bytes.extend(block(order, 6, &body));
    }
    let packet = frame(links[0]);
    bytes.extend(block(order, 3, &[&order.words(&[packet.len() as u32])[..], &packet].concat()));
    bytes
}

#[test]
fn older_format_is_read_in_both_byte_orders_and_resolutions() {
    const SLL2: u32 = 276;
    for order in [Order::Little, Order::Big] {
        for (magic, nanos) in [(0xA1B2_C3D4, 5_000), (0xA1B2_3C4D, 5)] {
            let files = Files::new();
            let mut context = logged(&files.log(), CipherSuite::Aes128Gcm, 1, 3);
            let frame = [&[8, 0][..], &[0; 18], &in_ip(&sealed(&mut context, 1))].concat();
            let length = frame.len();
            // Four bytes of a frame check sequence, as the high bits state.
            let link = SLL2 | 0x2400_0000;
            fs::write(files.path("capture"), pcap(order, magic, link, &[(frame, length)])).expect("written");
            assert_eq!(files.decrypt().expect("decrypted").opened, 1);
            let mut times = Vec::new();
            let found = |found: Found<'_>| {
                if let Found::Packet(packet) = found {
                    times.push(packet.time);
                }
                Ok(())
            };
            capture::read(&files.path("out"), found).expect("a capture");
            assert_eq!(times, [Time::from_nanos(7_000_000_000 + nanos)]);
        }
    }
}

#[test]
fn interfaces_have_link_types_of_their_own_in_each_section() {
    let files = Files::new();
    let mut context = logged(&files.log(), CipherSuite::Aes128Gcm, 1, 3);
    let packet = in_ip(&sealed(&mut context, 1));
    let frame = |link: u16| match link {
        0 => [&[2, 0, 0, 0][..], &packet].concat(),
        1 => [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0], &packet].concat(),
        113 => [&[0; 14][..], &[8, 0], &packet].concat(),
        _ => packet.clone(),
    };
    let sections = [
        section(Order::Little, &[1, 113, 101], frame),
        section(Order::Big, &[0, 1], frame),
        section(Order::Little, &[228], frame),
    ];
    fs::write(files.path("capture"), sections.concat()).expect("written");
    assert_eq!(files.decrypt().expect("decrypted"), Decrypted { opened: 9, ..Decrypted::default() });
}

#[test]
fn reason_is_given_where_nothing_is_decrypted() {
    let files = Files::new();
    let log = files.log();
    let mut context = logged(&log, CipherSuite::Aes128Gcm, 1, 3);
    let elsewhere = Files::new();
    let mut foreign = logged(&elsewhere.log(), CipherSuite::Aes128Gcm, 2, 3);
    let whole = |packet: Vec<u8>| (packet.clone(), packet.len());
    let dns = [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
    let mut fragment = in_ip(&sealed(&mut context, 1));
    fragment[6] = 0x20;
    let sum = etherparse::Ipv4HeaderSlice::from_slice(&fragment)
        .expect("a header")
        .to_header()
        .calc_header_checksum();
    fragment[10..12].copy_from_slice(&sum.to_be_bytes());
    let cut = in_ip(&sealed(&mut context, 1))[..40].to_vec();
    let cases = [
        (101, Vec::new(), Decrypted::default(), "it has no packets"),
        (
            101,
            vec![whole(in_ip(&sealed(&mut foreign, 1)))],
            Decrypted { closed: 1, ..Decrypted::default() },
            "1 packet of SCTP without a matching key",
        ),
        (
            101,
            vec![whole(in_ip(&plain(1))), whole(in_ip(&plain(2)))],
            Decrypted { plain: 2, ..Decrypted::default() },
            "2 packets of SCTP are not protected",
        ),
        (101, vec![(cut, 100)], Decrypted { cut_off: 1, ..Decrypted::default() }, "`tcpdump -s 0`"),
        (
            101,
            vec![whole(fragment)],
            Decrypted { fragments: 1, ..Decrypted::default() },
            "1 fragment of IP packets",
        ),
        (
            101,
            vec![whole(in_ip(&dns))],
            Decrypted { others: 1, ..Decrypted::default() },
            "neither SCTP nor SCTP in UDP",
        ),
        (
            127,
            vec![whole(vec![0; 60]), whole(vec![0; 60])],
            Decrypted { unknown_links: [(127, 2)].into(), ..Decrypted::default() },
            "2 packets of link type 127 (IEEE802_11_RADIO",
        ),
    ];
    for (link, packets, expected, reason) in cases {
        fs::write(files.path("capture"), pcap(Order::Little, 0xA1B2_C3D4, link, &packets)).expect("written");
        let done = files.decrypt().expect("read");
        assert_eq!(done, expected, "{reason}");
        let why = done.no_packet_reason().expect("nothing was decrypted");
        assert!(why.contains(reason), "{why}");
    }
    assert_eq!(Decrypted { opened: 1, closed: 1, ..Decrypted::default() }.no_packet_reason(), None);
}

/// Accepts a frame without its end if the packet in it is whole: the missing part is padding or a frame check sequence.
#[test]
fn frame_without_its_trailer_is_whole() {
    let files = Files::new();
    let mut context = logged(&files.log(), CipherSuite::Aes128Gcm, 1, 3);
    let frame = [&[0; 12][..], &[8, 0], &in_ip(&sealed(&mut context, 1))].concat();
    let length = frame.len() + 4;
    fs::write(files.path("capture"), pcap(Order::Little, 0xA1B2_C3D4, 1, &[(frame, length)]))
        .expect("written");
    assert_eq!(files.decrypt().expect("decrypted").opened, 1);
}
