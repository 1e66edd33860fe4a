//! A receiver accepts no more than was confirmed.

use std::fs;

use anabranch_transfer::protocol::{Failure, Kind, Message, Reason};
use anabranch_transfer::{
    Accept, Catalogue, Offering, OnClash, Report, Request, SendSource, Timeouts, TransferError, pull,
};

use crate::loopback::failures::Rogue;
use crate::loopback::requests::{fetch, fetch_from, file};
use crate::loopback::support::{connect, folder, listener, names, run};

/// Returns a catalogue of `film.mkv` with 1000 B, of `photos` with two files of 300 B in total, and of a stream.
async fn catalogue() -> Catalogue {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("film.mkv"), [0; 1000]).expect("written");
    fs::create_dir_all(dir.path().join("photos/2026")).expect("made");
    fs::write(dir.path().join("photos/a"), [0; 100]).expect("written");
    fs::write(dir.path().join("photos/2026/b"), [0; 200]).expect("written");
    let sources = vec![
        SendSource::path(dir.path().join("film.mkv")),
        SendSource::path(dir.path().join("photos")),
        SendSource::stream("piped", std::io::empty()),
    ];
    Offering::survey(sources).await.expect("there").catalogue().clone()
}

fn stream() -> Kind {
    Kind::Stream { token: [0; 16] }
}

#[test]
fn offer_beyond_what_was_confirmed_ends_the_transfer() {
    run(async {
        let accept = Accept::confirmed(&catalogue().await, 5000).expect("names");
        let photos = ("photos", Kind::Folder);
        let cases: [(&str, &[(&str, Kind)]); 10] = [
            ("a folder in place of a file", &[("film.mkv", Kind::Folder)]),
            ("a file below a file", &[("film.mkv/.ssh/authorized_keys", file(1))]),
            ("a larger file", &[("film.mkv", file(1001))]),
            ("a stream in place of a file", &[("film.mkv", stream())]),
            ("the same file twice", &[("film.mkv", file(1)), ("film.mkv", file(1))]),
            ("a file in place of a folder", &[("photos", file(1))]),
            (
                "one file more",
                &[photos.clone(), ("photos/a", file(1)), ("photos/b", file(1)), ("photos/c", file(1))],
            ),
            ("more bytes", &[photos.clone(), ("photos/a", file(300)), ("photos/b", file(1))]),
            ("one folder more", &[photos.clone(), ("photos/x", Kind::Folder), ("photos/y", Kind::Folder)]),
            ("a link", &[photos.clone(), ("photos/l", Kind::Link { target: "a".into() })]),
        ];
        for (case, offers) in cases {
            let to = tempfile::tempdir().expect("a folder");
            let (ended, reason) = fetch(&accept, folder(to.path(), OnClash::Refuse), offers).await;
            let Err(TransferError::Unconfirmed(what)) = ended else { panic!("{case}: {ended:?}") };
            assert!(what.to_string().contains(offers.last().expect("an offer").0), "{case}: {what}");
            assert_eq!(reason, Some(Reason::NotAllowed), "{case}");
            let last = offers.last().expect("an offer").0;
            assert!(!to.path().join(last).exists() || last == "photos", "{case}");
        }
    });
}

#[test]
fn stream_ends_at_the_bound_that_was_confirmed() {
    run(async {
        let accept = Accept::confirmed(&catalogue().await, 5).expect("names");
        let (endpoint, to) = (listener(), tempfile::tempdir().expect("a folder"));
        let source = async {
            let rogue = Rogue::welcome(&endpoint).await;
            rogue.offer(0, "piped", stream()).await;
            assert!(matches!(rogue.receive_message().await, Message::Answer { .. }));
            let content = b"sixsix";
            let header = [0_u32, 0, 0, 6, 0].map(u32::to_be_bytes).concat();
            let hash = blake3::hash(content);
            rogue.data([&header[..], content, hash.as_bytes()].concat()).await;
            rogue.last_failure().await
        };
        let store = folder(to.path(), OnClash::Refuse);
        let (ended, reason) = tokio::join!(fetch_from(&endpoint, &accept, store), source);
        assert!(matches!(ended, Err(TransferError::Unconfirmed(_))), "{ended:?}");
        assert_eq!(reason, Some(Reason::NotAllowed));
        assert!(!names(to.path()).iter().any(|name| name == "piped"));
    });
}

#[test]
fn file_that_is_given_up_and_offered_again_counts_once() {
    run(async {
        let accept = Accept::confirmed(&catalogue().await, 5).expect("names");
        for (second, fits) in [(1000, true), (1001, false)] {
            let (endpoint, to) = (listener(), tempfile::tempdir().expect("a folder"));
            let source = async {
                let rogue = Rogue::welcome(&endpoint).await;
                rogue.offer(0, "film.mkv", file(900)).await;
                assert!(matches!(rogue.receive_message().await, Message::Answer { .. }));
                let failure = Failure::new(Reason::Changed, "it was changed");
                rogue.send_message(&Message::GiveUp { id: 0, failure, again: true }).await;
                rogue.offer(1, "film.mkv", file(second)).await;
                let heard = rogue.receive_message().await;
                rogue.end();
                heard
            };
            let store = folder(to.path(), OnClash::Refuse);
            let (ended, heard) = tokio::join!(fetch_from(&endpoint, &accept, store), source);
            assert_eq!(matches!(heard, Message::Answer { id: 1, .. }), fits, "{heard:?}");
            assert_eq!(matches!(ended, Err(TransferError::Unconfirmed(_))), !fits, "{ended:?}");
        }
    });
}

#[test]
fn bounds_hold_for_all_associations_of_a_transfer() {
    run(async {
        let accept = Accept::confirmed(&catalogue().await, 5).expect("names");
        let (endpoint, to) = (listener(), tempfile::tempdir().expect("a folder"));
        let source = async {
            let first = Rogue::welcome(&endpoint).await;
            for (id, name) in (0..).zip(["photos", "photos/x"]) {
                first.offer(id, name, Kind::Folder).await;
                assert!(matches!(first.receive_message().await, Message::Done { .. }));
            }
            first.0.abort();
            let second = Rogue::welcome(&endpoint).await;
            for (id, name) in (0..).zip(["photos", "photos/x", "photos/y"]) {
                second.offer(id, name, Kind::Folder).await;
            }
            second.last_failure().await
        };
        let store = folder(to.path(), OnClash::Refuse);
        let again = || async { Ok::<_, TransferError>(connect(&endpoint).await) };
        let (request, report) = (Request::from(accept), Report::default());
        let pulled = pull(&request, store, connect(&endpoint).await, again, Timeouts::default(), &report);
        let (ended, reason) = tokio::join!(pulled, source);
        assert!(matches!(ended, Err(TransferError::Unconfirmed(_))), "{ended:?}");
        assert_eq!(reason, Some(Reason::NotAllowed));
        assert!(to.path().join("photos/x").exists() && !to.path().join("photos/y").exists());
    });
}
