//! Published test vectors: RFC 8448 and RFC 9001, the test cases of the authors of GCM, and FIPS 197.
//!
//! RFC 9147 has no examples of protected records. DTLS 1.3 uses the nonce and AEAD of TLS 1.3 and the masks of QUIC.

use anabranch_core::protection::RecordCipher;
use anabranch_dtls::{CipherSuite, KeyMaterial};
use hex_literal::hex;

fn cipher(suite: CipherSuite, key: &[u8], iv: &[u8; 12]) -> Box<dyn RecordCipher> {
    KeyMaterial::new(suite, key, &vec![0; key.len()], iv).unwrap().cipher()
}

fn masking(suite: CipherSuite, key: &[u8]) -> Box<dyn RecordCipher> {
    KeyMaterial::new(suite, &vec![0; key.len()], key, &[0; 12]).unwrap().cipher()
}

/// Seals `plain`, expects `sealed`, and opens it again. Checks that a changed header or number does not open.
fn assert_record(cipher: &dyn RecordCipher, number: u64, header: &[u8], plain: &[u8], sealed: &[u8]) {
    let mut made = [plain, &[0; 16]].concat();
    let (content, tag) = made.split_at_mut(plain.len());
    cipher.seal(number, header, content, tag).unwrap();
    assert_eq!(made, sealed);
    assert_eq!(cipher.open(number, header, &mut made.clone()), Ok(plain));
    assert!(cipher.open(number + 1, header, &mut made.clone()).is_err());
    assert!(cipher.open(number, &header[1..], &mut made).is_err());
}

/// Plaintext of all GCM test cases with additional data.
const GCM_PLAIN: [u8; 60] = hex!(
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
    "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
);
const GCM_HEADER: [u8; 20] = hex!("feedfacedeadbeeffeedfacedeadbeefabaddad2");
const GCM_IV: [u8; 12] = hex!("cafebabefacedbaddecaf888");

#[test]
fn application_data_of_rfc_8448_section_3() {
    let key = hex!("17422dda596ed5d9acd890e3c63f5051");
    let cipher = cipher(CipherSuite::Aes128Gcm, &key, &hex!("5b78923dee08579033e523d9"));
    let mut plain: Vec<u8> = (0..0x32).collect();
    plain.push(23);
    let sealed = hex!(
        "a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54a9a20"
        "441e2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4"
    );
    assert_record(&*cipher, 0, &hex!("1703030043"), &plain, &sealed);
}

#[test]
fn test_case_4_of_gcm() {
    let cipher = cipher(CipherSuite::Aes128Gcm, &hex!("feffe9928665731c6d6a8f9467308308"), &GCM_IV);
    let sealed = hex!(
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
        "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
        "5bc94fbc3221a5db94fae95ae7121a47"
    );
    assert_record(&*cipher, 0, &GCM_HEADER, &GCM_PLAIN, &sealed);
}

#[test]
fn test_case_16_of_gcm() {
    let key = hex!("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    let cipher = cipher(CipherSuite::Aes256Gcm, &key, &GCM_IV);
    let sealed = hex!(
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        "76fc6ece0f4e1768cddf8853bb2d551b"
    );
    assert_record(&*cipher, 0, &GCM_HEADER, &GCM_PLAIN, &sealed);
}

#[test]
fn the_packet_number_enters_the_nonce_as_in_rfc_9001_appendix_a_5() {
    let key = hex!("c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8");
    let cipher = cipher(CipherSuite::ChaCha20Poly1305, &key, &hex!("e0459b3474bdd0e44a41c144"));
    let sealed = hex!("655e5cd55c41f69080575d7999c25a5bfb");
    assert_record(&*cipher, 654_360_564, &hex!("4200bff4"), &[1], &sealed);
}

#[test]
fn masks_of_rfc_9001_appendix_a() {
    let aes = [
        (hex!("9f50449e04a0e810283a1e9933adedd2"), hex!("d1b1c98dd7689fb8ec11d242b123dc9b"), [0x43, 0x7B]),
        (hex!("c206b8d9b9f0f37644430b490eeaa314"), hex!("2cd0991cd25b0aac406a5816b6394100"), [0x2E, 0xC0]),
    ];
    for (key, sample, mask) in aes {
        assert_eq!(masking(CipherSuite::Aes128Gcm, &key).mask(&sample), mask);
    }
    let key = hex!("25a282b9e82f06f21f488917a4fc8f1b73573685608597d0efcb076b0ab7a7a4");
    let chacha = masking(CipherSuite::ChaCha20Poly1305, &key);
    assert_eq!(chacha.mask(&hex!("5e5cd55c41f69080575d7999c25a5bfb")), [0xAE, 0xFE]);
}

#[test]
fn masks_of_aes_256_are_a_block_of_fips_197() {
    let key = hex!("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
    let aes = masking(CipherSuite::Aes256Gcm, &key);
    assert_eq!(aes.mask(&hex!("00112233445566778899aabbccddeeff")), [0x8E, 0xA2]);
}

#[test]
fn suites_have_the_numbers_of_iana() {
    let numbers = CipherSuite::ALL.map(CipherSuite::number);
    assert_eq!(numbers, [0x1301, 0x1302, 0x1303]);
    assert_eq!(CipherSuite::of_number(0x1302), Some(CipherSuite::Aes256Gcm));
    assert_eq!(CipherSuite::of_number(0x1304), None);
}

#[test]
fn no_cipher_shows_its_keys() {
    for suite in CipherSuite::ALL {
        let key = vec![0xA1; suite.key_len()];
        let shown = format!("{:?}", cipher(suite, &key, &[0xA1; 12]));
        assert_eq!(shown, format!("SuiteCipher {{ suite: {suite:?}, .. }}"));
    }
}
