//! Interoperation with records that Python's `cryptography` sealed (`records.py`): this crate opens them and seals the same bytes.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anabranch_core::protection::{ReceiveContext, RecordCipher, SendContext};
use anabranch_dtls::{CipherSuite, KeyMaterial};
use anabranch_wire::{Chunk, ChunkType, DtlsUse, DtlsView, Header, PacketView, PacketWriter, RawChunk};

/// Output of `records.py --vectors`.
const STORED: &str = include_str!("records.txt");

/// Record of the table.
struct Vector {
    suite: CipherSuite,
    material: KeyMaterial,
    /// Keys and epoch, as text of the line.
    keys: String,
    epoch: u64,
    number: u64,
    chunks: Vec<u8>,
    sealed: Vec<u8>,
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn vector(line: &str) -> Vector {
    let parts: Vec<&str> = line.split(' ').collect();
    let [_, name, key, sn_key, iv, epoch, number, chunks, sealed] = parts[..] else { panic!("{line}") };
    let suite = match name {
        "aes-128-gcm" => CipherSuite::Aes128Gcm,
        "aes-256-gcm" => CipherSuite::Aes256Gcm,
        "chacha20-poly1305" => CipherSuite::ChaCha20Poly1305,
        _ => panic!("{name}"),
    };
    Vector {
        suite,
        material: KeyMaterial::new(suite, &bytes(key), &bytes(sn_key), &bytes(iv)).unwrap(),
        keys: format!("{name} {key} {sn_key} {iv} {epoch}"),
        epoch: epoch.parse().unwrap(),
        number: number.parse().unwrap(),
        chunks: bytes(chunks),
        sealed: bytes(sealed),
    }
}

fn vectors() -> impl Iterator<Item = Vector> {
    STORED.lines().map(vector)
}

fn record(chunk: &[u8]) -> DtlsView<'_> {
    let Ok(Chunk::Dtls(view)) = RawChunk::parse(chunk).unwrap().decode() else { panic!("no DTLS") };
    view
}

/// Opens a record with the cipher alone. A receive context would not accept its sequence number yet.
fn open(cipher: &dyn RecordCipher, vector: &Vector) -> Vec<u8> {
    let (header, encrypted) = record(&vector.sealed).record().unwrap();
    let header = header.masked(cipher.mask(encrypted.first_chunk().unwrap()));
    assert_eq!(header, anabranch_wire::DtlsRecordHeader::new(vector.epoch, vector.number as u16));
    let mut encrypted = encrypted.to_vec();
    let content = cipher.open(vector.number, &header.to_wire(), &mut encrypted).unwrap();
    anabranch_wire::dtls_content(content).unwrap().to_vec()
}

#[test]
fn stored_records_of_all_suites_are_opened() {
    let mut suites = Vec::new();
    for vector in vectors() {
        assert_eq!(open(&*vector.material.cipher(), &vector), vector.chunks);
        suites.push(vector.suite);
    }
    suites.dedup();
    assert_eq!(suites, CipherSuite::ALL);
}

#[test]
fn the_same_keys_make_the_same_records() {
    for vector in vectors() {
        let cipher = vector.material.cipher();
        let (header, encrypted) = record(&vector.sealed).record().unwrap();
        let mut made = [&vector.chunks[..], &[23], &[0; 16]].concat();
        let (content, tag) = made.split_at_mut(vector.chunks.len() + 1);
        let plain = anabranch_wire::DtlsRecordHeader::new(vector.epoch, vector.number as u16);
        cipher.seal(vector.number, &plain.to_wire(), content, tag).unwrap();
        assert_eq!(made, encrypted);
        assert_eq!(header, plain.masked(cipher.mask(made.first_chunk().unwrap())));
    }
}

/// Protects a packet with one chunk of this value. Returns the DTLS chunk and the plaintext chunk.
fn protect(context: &mut SendContext, value: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut plain = vec![0; 2_000];
    let mut writer = PacketWriter::new(&mut plain, Header::default()).unwrap();
    writer.raw_parts(ChunkType::HEARTBEAT, 0, value).unwrap();
    let plain_len = writer.finish();
    let mut buf = vec![0; 2_000];
    let mut writer = PacketWriter::protected(&mut buf, Header::default(), context.tag_bytes()).unwrap();
    writer.raw_parts(ChunkType::HEARTBEAT, 0, value).unwrap();
    let len = writer.finish_protected(DtlsUse::Primary, |record| context.seal(record)).unwrap();
    let packet = PacketView::parse(&buf[..len]).unwrap();
    let chunk = packet.chunks().next().unwrap().unwrap();
    (chunk.bytes().to_vec(), plain[12..plain_len].to_vec())
}

/// Returns the script's answers to these lines.
fn ask(lines: &[String]) -> Vec<String> {
    let python = std::env::var("ANABRANCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python with `cryptography`; ANABRANCH_PYTHON may name it");
    let mut stdin = child.stdin.take().unwrap();
    let text = lines.join("\n");
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs Python's cryptography"]
fn python_opens_what_contexts_seal() {
    for vector in vectors() {
        let mut sender = SendContext::new(vector.epoch, vector.material.cipher());
        let (mut questions, mut plain) = (Vec::new(), Vec::new());
        for number in 0..300_usize {
            let (sealed, inside) = protect(&mut sender, &vec![number as u8; number * 3]);
            questions.push(format!("open {} {number} {}", vector.keys, hex(&sealed)));
            plain.push(hex(&inside));
        }
        assert_eq!(ask(&questions), plain, "{:?}", vector.suite);
    }
}

#[test]
#[ignore = "needs Python's cryptography"]
fn contexts_open_what_python_seals() {
    for vector in vectors() {
        let questions: Vec<String> =
            (0..300).map(|number| format!("seal {} {number} {}", vector.keys, hex(&vector.chunks))).collect();
        let mut receiver = ReceiveContext::new(vector.epoch, vector.material.cipher());
        // Includes two records that arrive late.
        let mut sealed = ask(&questions);
        sealed.swap(3, 290);
        for chunk in sealed {
            let chunk = bytes(&chunk);
            let (header, encrypted) = record(&chunk).record().unwrap();
            assert_eq!(receiver.open(header, &mut encrypted.to_vec()), Ok(&vector.chunks[..]));
        }
        assert_eq!((receiver.opened(), receiver.failed()), (300, 0));
    }
}
