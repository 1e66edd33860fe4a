//! Tests of the messages.

use proptest::prelude::*;

use super::*;

fn address() -> impl Strategy<Value = SocketAddr> {
    (any::<[u8; 4]>(), any::<bool>(), 1..=u16::MAX).prop_map(|(octets, is_v4, port)| {
        let [a, b, c, d] = octets.map(|octet| octet % 200 + 1);
        match is_v4 {
            true => SocketAddr::from(([a, b, c, d], port)),
            false => SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, u16::from(a), u16::from(b)], port)),
        }
    })
}

fn addresses() -> impl Strategy<Value = Vec<SocketAddr>> {
    proptest::collection::vec(address(), 0..=MAX_ADDRESSES)
}

fn request() -> impl Strategy<Value = Request> {
    let pair = 0..MAX_ADDRESSES as u8;
    prop_oneof![
        any::<[u8; 16]>().prop_map(|registration| Request::Register { registration }),
        any::<(CallId, RawKey)>().prop_map(|(call, listener)| Request::Call { call, listener }),
        any::<CallId>().prop_map(|call| Request::Accept { call }),
        (any::<CallId>(), pair).prop_map(|(call, pair)| Request::Relay { call, pair }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let signature =
        || any::<[[u8; 32]; 2]>().prop_map(|halves| halves.concat().try_into().expect("64 bytes"));
    let pair = || 0..MAX_ADDRESSES as u8;
    let refusal = proptest::sample::select(&Refusal::ALL[..]);
    prop_oneof![
        any::<Nonce>().prop_map(|nonce| Message::Hello { nonce }),
        (any::<(Nonce, Cookie)>(), address()).prop_map(|((nonce, cookie), mapped)| Message::Challenge {
            nonce,
            cookie,
            mapped
        }),
        (any::<(Cookie, RawKey)>(), request(), signature()).prop_map(
            |((cookie, key), request, signature)| {
                Message::Signed(Signed { cookie, key, request, signature })
            }
        ),
        any::<[u8; 16]>().prop_map(|registration| Message::Registered { registration }),
        any::<[u8; 16]>().prop_map(|registration| Message::Superseded { registration }),
        (any::<([u8; 16], CallId, RawKey, Cookie)>(), signature(), addresses()).prop_map(
            |((registration, call, caller, cookie), signature, addresses)| Message::Incoming {
                registration,
                call,
                caller,
                cookie,
                signature,
                addresses
            }
        ),
        (any::<CallId>(), addresses()).prop_map(|(call, addresses)| Message::Calling { call, addresses }),
        (any::<(CallId, Token)>(), pair(), 1..=u16::MAX)
            .prop_map(|((call, token), pair, port)| Message::RelayOffer { call, pair, port, token }),
        (any::<CallId>(), pair(), refusal).prop_map(|(call, pair, refusal)| Message::RelayRefused {
            call,
            pair,
            refusal
        }),
        any::<(Token, Cookie)>().prop_map(|(token, cookie)| Message::Join { token, cookie }),
        any::<Token>().prop_map(|token| Message::Joined { token }),
        any::<(CallId, Nonce)>().prop_map(|(call, nonce)| Message::Probe { call, nonce }),
        any::<(CallId, Nonce)>().prop_map(|(call, nonce)| Message::ProbeReply { call, nonce }),
    ]
}

proptest! {
    #[test]
    fn message_survives_its_encoding(message in message()) {
        let bytes = message.to_bytes();
        prop_assert!(is_rendezvous(&bytes));
        prop_assert_eq!(Message::parse(&bytes), Ok(message));
    }

    #[test]
    fn truncated_and_longer_messages_are_malformed(message in message(), cut in any::<proptest::sample::Index>()) {
        let bytes = message.to_bytes();
        let cut = cut.index(bytes.len());
        prop_assert!(Message::parse(&bytes[..cut]).is_err());
        prop_assert!(Message::parse(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn accepted_bytes_are_the_only_encoding_of_their_message(bytes in proptest::collection::vec(any::<u8>(), 0..80), kind in 0..20_u8) {
        let datagram = [&PREFIX[..], &[VERSION, kind], &bytes].concat();
        if let Ok(message) = Message::parse(&datagram) {
            prop_assert_eq!(message.to_bytes(), datagram);
        }
    }

    #[test]
    fn signature_covers_every_byte_of_a_request(request in request(), cookie in any::<Cookie>(), at in 0..1000_usize) {
        let key = KeyPair::generate().expect("randomness");
        let signed = request.sign(cookie, &key);
        prop_assert_eq!(signed.verify(), Some(key.public()));
        let mut bytes = Message::Signed(signed).to_bytes();
        let end = bytes.iter().rposition(|byte| *byte != 0).expect("a signature");
        bytes[HEADER_LEN + at % (end - HEADER_LEN)] ^= 1;
        if let Ok(Message::Signed(changed)) = Message::parse(&bytes) {
            prop_assert_eq!(changed.verify(), None);
        }
    }
}

#[test]
fn another_version_is_reported() {
    let mut bytes = Message::Hello { nonce: [1; 8] }.to_bytes();
    bytes[4] = 2;
    assert_eq!(Message::parse(&bytes), Err(ParseError::Version(2)));
}

#[test]
fn impossible_addresses_are_malformed() {
    for text in ["0.0.0.0:1", "192.0.2.1:0", "224.0.0.1:1", "255.255.255.255:1", "[ff02::1]:1", "[fe80::1]:1"]
    {
        let addresses = vec![text.parse().expect("an address")];
        let bytes = Message::Calling { call: [0; 16], addresses }.to_bytes();
        assert_eq!(Message::parse(&bytes), Err(ParseError::Malformed), "{text}");
    }
}

#[test]
fn more_addresses_or_sockets_than_the_maximum_are_malformed() {
    let address = "192.0.2.1:1".parse().expect("an address");
    let mut bytes = Message::Calling { call: [0; 16], addresses: vec![address; MAX_ADDRESSES] }.to_bytes();
    let one = bytes[bytes.len() - 18..].to_vec();
    bytes[HEADER_LEN + 16] += 1;
    bytes.extend_from_slice(&one);
    assert_eq!(Message::parse(&bytes), Err(ParseError::Malformed));
    let mut bytes = Message::RelayOffer { call: [0; 16], pair: 7, port: 1, token: [0; 16] }.to_bytes();
    bytes[HEADER_LEN + 16] = 8;
    assert_eq!(Message::parse(&bytes), Err(ParseError::Malformed));
}

#[test]
fn longest_answers_to_a_request_are_together_no_longer_than_it() {
    let addresses = vec!["192.0.2.1:1".parse().expect("an address"); MAX_ADDRESSES];
    let incoming = Message::Incoming {
        registration: [0; 16],
        call: [0; 16],
        caller: [0; 32],
        cookie: [0; 20],
        signature: [0; 64],
        addresses: addresses.clone(),
    };
    let calling = Message::Calling { call: [0; 16], addresses };
    let bytes = incoming.to_bytes().len() + calling.to_bytes().len();
    assert!(bytes <= REQUEST_LEN, "{bytes} bytes");
}
