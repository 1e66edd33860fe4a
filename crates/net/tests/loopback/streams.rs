//! Stream handles: independence, ends, resets, and peers without stream control.

use std::num::NonZeroU16;
use std::time::Duration;

use anabranch_net::{
    Association, AssociationEvent, CloseReason, Config, Events, RecvError, RecvStream, SendError,
    SendOptions, SendStream, StreamDirection, StreamRecvError, StreamScheduler, StreamSendError,
};
use anabranch_tests::credentials::Mode;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::loopback::rig::{Duo, client, in_both_modes, on, peer, quick, server, within};

fn controlled() -> Config {
    quick().stream_control()
}

async fn accept(duo: &Duo) -> (SendStream, RecvStream) {
    within(duo.theirs.accept_stream()).await.expect("no error").expect("a stream")
}

async fn open(duo: &Duo) -> (SendStream, RecvStream) {
    within(duo.ours.open_stream()).await.expect("a stream")
}

async fn send(stream: &mut SendStream, text: &'static str) {
    within(stream.send(text)).await.expect("accepted");
}

async fn text(stream: &mut RecvStream) -> Option<String> {
    let message = within(stream.recv()).await.expect("no error")?;
    Some(String::from_utf8_lossy(&message.payload).into_owned())
}

#[tokio::test]
async fn bytes_of_a_stream_come_back_and_both_halves_end_by_themselves() {
    in_both_modes(async |mode: Mode| {
        let duo = Duo::connected_in(mode, 2, controlled()).await;
        let data: Vec<u8> = (0..5_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (mut sender, mut receiver) = open(&duo).await;
        let sent = Sha256::digest(&data);
        let writing = async {
            sender.write_all(&data).await.expect("written");
            sender.shutdown().await.expect("finished");
        };
        let echoing = async {
            let (mut back, mut from) = accept(&duo).await;
            tokio::io::copy(&mut from, &mut back).await.expect("copied");
            back.finish().expect("open until now");
        };
        let mut came = Vec::new();
        let reading = receiver.read_to_end(&mut came);
        let (_, _, read) = within(async { tokio::join!(writing, echoing, reading) }).await;
        assert_eq!((read.expect("read"), Sha256::digest(&came)), (data.len(), sent));
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_nobody_reads_stops_no_other() {
    in_both_modes(async |mode: Mode| {
        let duo = Duo::connected_in(mode, 1, controlled().streams(1000)).await;
        let (mut stalled, _unused) = open(&duo).await;
        let filling = tokio::spawn(async move { while stalled.send(vec![1; 10_000]).await.is_ok() {} });
        let (_unread, _silent) = accept(&duo).await;
        // Together more than the receive buffer, the send buffer and the window of a stream.
        for _ in 0..20 {
            let (mut sender, _reply) = open(&duo).await;
            let writing = async {
                sender.write_all(&[2; 2_000_000]).await.expect("written");
                sender.finish().expect("open until now");
            };
            let reading = async {
                let (_back, mut from) = accept(&duo).await;
                tokio::io::copy(&mut from, &mut tokio::io::sink()).await.expect("read")
            };
            let ((), read) = within(async { tokio::join!(writing, reading) }).await;
            assert_eq!(read, 2_000_000);
        }
        assert!(!filling.is_finished(), "its writer waits");
        filling.abort();
    })
    .await;
}

#[tokio::test]
async fn identifiers_are_used_again() {
    let duo = Duo::connected(1, controlled().streams(4)).await;
    for turn in 0..200 {
        let (mut sender, mut receiver) = open(&duo).await;
        assert!(sender.id() < 4, "turn {turn}");
        send(&mut sender, "question").await;
        sender.finish().expect("open until now");
        let (mut back, mut from) = accept(&duo).await;
        assert_eq!((text(&mut from).await.as_deref(), text(&mut from).await), (Some("question"), None));
        send(&mut back, "answer").await;
        back.finish().expect("open until now");
        assert_eq!((text(&mut receiver).await.as_deref(), text(&mut receiver).await), (Some("answer"), None));
    }
}

#[tokio::test]
async fn dropping_a_finished_half_withdraws_nothing() {
    let unaware = quick().with_core(|core| core.stream_changes = None);
    for theirs in [controlled(), unaware] {
        let endpoint = server(&[1], theirs);
        let us = client(&[11]);
        let (ours, theirs) =
            tokio::join!(within(us.connect(peer(&us, &endpoint), controlled())), within(endpoint.accept()));
        let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
        let (mut sender, _reply) = within(ours.open_stream()).await.expect("a stream");
        send(&mut sender, "last").await;
        // The message has not left the mailbox: no task has run since.
        sender.finish().expect("open until now");
        drop(sender);
        within(ours.shutdown()).await.expect("a good end");
        let came = match within(theirs.accept_stream()).await {
            Ok(stream) => text(&mut stream.expect("a stream").1).await,
            Err(StreamRecvError::NoStreamControl) => {
                let message = within(theirs.recv()).await.expect("no error").expect("a message");
                Some(String::from_utf8_lossy(&message.payload).into_owned())
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(came.as_deref(), Some("last"));
    }
}

#[tokio::test]
async fn a_late_drop_leaves_the_next_use_of_the_identifier_alone() {
    let duo = Duo::connected(1, controlled().streams(2)).await;
    let (mut first, mut reply) = open(&duo).await;
    first.finish().expect("open until now");
    let (mut back, _from) = accept(&duo).await;
    back.finish().expect("open until now");
    assert_eq!(text(&mut reply).await, None);
    let (mut second, _reply) = open(&duo).await;
    assert_eq!(second.id(), first.id());
    send(&mut second, "of the second use").await;
    drop(first);
    let (_back, mut from) = accept(&duo).await;
    assert_eq!(text(&mut from).await.as_deref(), Some("of the second use"));
}

#[tokio::test]
async fn opening_waits_while_all_identifiers_are_in_use() {
    let duo = Duo::connected(1, controlled().streams(2)).await;
    let (mut sender, receiver) = open(&duo).await;
    let waits = tokio::time::timeout(Duration::from_millis(50), duo.ours.open_stream()).await;
    assert!(waits.is_err(), "each side has one identifier");
    send(&mut sender, "one").await;
    sender.finish().expect("open until now");
    let (mut back, _from) = accept(&duo).await;
    back.finish().expect("open until now");
    drop(receiver);
    let (second, _) = open(&duo).await;
    assert_eq!(second.id(), sender.id());
}

#[tokio::test]
async fn a_reset_reaches_the_reader_with_its_code() {
    let duo = Duo::connected(1, controlled()).await;
    let (mut sender, _reply) = open(&duo).await;
    send(&mut sender, "begun").await;
    let (_back, mut from) = accept(&duo).await;
    assert_eq!(text(&mut from).await.as_deref(), Some("begun"));
    sender.reset(7).expect("open until now");
    assert_eq!(within(from.recv()).await, Err(StreamRecvError::Reset { code: 7 }));
    assert_eq!(within(sender.send("late")).await, Err(StreamSendError::Ended));
}

#[tokio::test]
async fn dropping_the_sending_half_is_no_regular_end() {
    let duo = Duo::connected(1, controlled()).await;
    let (mut sender, _reply) = open(&duo).await;
    send(&mut sender, "begun").await;
    let (_back, mut from) = accept(&duo).await;
    assert_eq!(text(&mut from).await.as_deref(), Some("begun"));
    drop(sender);
    assert_eq!(within(from.recv()).await, Err(StreamRecvError::Reset { code: 0 }));
}

#[tokio::test]
async fn a_stopped_writer_learns_the_code_at_once() {
    let duo = Duo::connected(1, controlled()).await;
    let (mut sender, _reply) = open(&duo).await;
    send(&mut sender, "begun").await;
    let (_back, mut from) = accept(&duo).await;
    from.stop(9);
    assert_eq!(within(sender.stopped()).await, Some(9));
    assert_eq!(within(sender.send("more")).await, Err(StreamSendError::Stopped { code: 9 }));
    assert_eq!(within(from.recv()).await, Ok(None), "this side reads no more");
}

#[tokio::test]
async fn a_writer_that_waits_for_credit_is_stopped() {
    let duo = Duo::connected(1, controlled()).await;
    let (mut sender, _reply) = open(&duo).await;
    let writing = tokio::spawn(async move {
        loop {
            if let Err(error) = sender.send(vec![1; 10_000]).await {
                return error;
            }
        }
    });
    let (_back, from) = accept(&duo).await;
    drop(from);
    assert_eq!(within(writing).await.expect("a task"), StreamSendError::Stopped { code: 0 });
}

#[tokio::test]
async fn unordered_messages_stay_datagrams_beside_streams() {
    let duo = Duo::connected(1, controlled()).await;
    let datagram = SendOptions { unordered: true, ..SendOptions::default() };
    within(duo.ours.send("datagram", datagram)).await.expect("accepted");
    let (mut sender, _reply) = open(&duo).await;
    send(&mut sender, "in order").await;
    let (_back, mut from) = accept(&duo).await;
    assert_eq!(text(&mut from).await.as_deref(), Some("in order"));
    let came = within(duo.theirs.recv()).await.expect("no error").expect("a datagram");
    assert_eq!((&came.payload[..], came.unordered), (&b"datagram"[..], true));
    assert_eq!(within(duo.ours.send("ordered", on(0))).await, Err(SendError::BelongsToStreams));
}

#[tokio::test]
async fn unread_datagrams_stop_no_stream() {
    let duo = Duo::connected(1, controlled()).await;
    let datagram = SendOptions { unordered: true, ..SendOptions::default() };
    let mut sent = 0;
    let (mut sender, _reply) = open(&duo).await;
    within(async {
        // More than all buffers between the two applications.
        while sent < 40 << 20 {
            duo.ours.send(vec![5; 50_000], datagram).await.expect("accepted");
            sent += 50_000;
        }
    })
    .await;
    send(&mut sender, "after them").await;
    let (_back, mut from) = accept(&duo).await;
    assert_eq!(text(&mut from).await.as_deref(), Some("after them"));
}

#[tokio::test]
async fn streams_work_with_a_peer_that_does_not_control_them() {
    let endpoint = server(&[1], quick());
    let us = client(&[11]);
    let (ours, theirs) =
        tokio::join!(within(us.connect(peer(&us, &endpoint), controlled())), within(endpoint.accept()));
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    let (mut sender, mut receiver) = within(ours.open_stream()).await.expect("a stream");
    let stream = sender.id();
    send(&mut sender, "question").await;
    sender.finish().expect("open until now");
    let question = within(theirs.recv()).await.expect("no error").expect("a message");
    assert_eq!((&question.payload[..], question.stream), (&b"question"[..], stream));
    within(theirs.send("answer", on(stream))).await.expect("accepted");
    assert_eq!(text(&mut receiver).await.as_deref(), Some("answer"));
    within(theirs.send("hello", on(stream + 1))).await.expect("accepted");
    let (_, mut other) = within(ours.accept_stream()).await.expect("no error").expect("a stream");
    assert_eq!(text(&mut other).await.as_deref(), Some("hello"));
    let (closing, end) = within(async { tokio::join!(theirs.shutdown(), other.recv()) }).await;
    assert_eq!((closing, end), (Ok(()), Ok(None)), "the stream ends with the association");
}

#[tokio::test]
async fn streams_end_by_resets_where_the_peer_does_not_control_them() {
    let endpoint = server(&[1], quick());
    let us = client(&[11]);
    let (ours, theirs) =
        tokio::join!(within(us.connect(peer(&us, &endpoint), controlled())), within(endpoint.accept()));
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    let mut events = theirs.events();
    let mut resets = async |direction| loop {
        let event = within(events.next()).await.expect("it is open").expect("none was missed");
        if let AssociationEvent::StreamsReset { direction: found, streams } = event {
            assert_eq!(found, direction);
            return streams;
        }
    };
    let mut used = None;
    for turn in 0..3 {
        let (mut sender, mut receiver) = within(ours.open_stream()).await.expect("a stream");
        let stream = sender.id();
        assert_eq!(*used.get_or_insert(stream), stream, "turn {turn}: the identifier is free again");
        send(&mut sender, "question").await;
        sender.finish().expect("open until now");
        let question = within(theirs.recv()).await.expect("no error").expect("a message");
        assert_eq!((&question.payload[..], question.stream), (&b"question"[..], stream));
        assert_eq!(resets(StreamDirection::Incoming).await, [stream]);
        within(theirs.send("answer", on(stream))).await.expect("accepted");
        assert_eq!(text(&mut receiver).await.as_deref(), Some("answer"));
        drop(receiver);
        assert_eq!(resets(StreamDirection::Outgoing).await, [stream]);
    }
}

fn is_incoming_reset(event: &AssociationEvent) -> bool {
    matches!(event, AssociationEvent::StreamsReset { direction: StreamDirection::Incoming, .. })
}

/// Returns `true` if such an event was reported by now.
async fn was_reset(events: &mut Events) -> bool {
    while let Ok(event) = timeout(Duration::ZERO, events.next()).await {
        if is_incoming_reset(&event.expect("it is open").expect("none was missed")) {
            return true;
        }
    }
    false
}

async fn next_reset(events: &mut Events) {
    while !is_incoming_reset(&within(events.next()).await.expect("it is open").expect("none was missed")) {}
}

async fn expect(theirs: &Association, text: &str) {
    let message = within(theirs.recv()).await.expect("no error").expect("a message");
    assert_eq!(String::from_utf8_lossy(&message.payload), text);
}

/// The end of a use and the first message of the next one are in one batch.
#[tokio::test]
async fn messages_of_the_next_use_of_a_stream_follow_its_reset() {
    let endpoint = server(&[1], quick());
    let us = client(&[11]);
    let (ours, theirs) =
        tokio::join!(within(us.connect(peer(&us, &endpoint), controlled())), within(endpoint.accept()));
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    let [mut our_events, mut their_events] = [ours.events(), theirs.events()];
    for turn in 0..10 {
        let (mut sender, receiver) = within(ours.open_stream()).await.expect("a stream");
        let stream = sender.id();
        send(&mut sender, "old").await;
        expect(&theirs, "old").await;
        drop(receiver);
        next_reset(&mut our_events).await;
        sender.finish().expect("open until now");
        let (mut sender, receiver) = within(ours.open_stream()).await.expect("a stream");
        assert_eq!(sender.id(), stream, "the identifier is free");
        send(&mut sender, "new").await;
        expect(&theirs, "new").await;
        assert!(was_reset(&mut their_events).await, "turn {turn}: no reset came before");
        drop((sender, receiver));
        next_reset(&mut their_events).await;
        next_reset(&mut our_events).await;
    }
}

#[tokio::test]
async fn streams_end_with_their_association() {
    let duo = Duo::connected(1, controlled()).await;
    let (mut sender, mut receiver) = open(&duo).await;
    send(&mut sender, "begun").await;
    let (_back, mut from) = accept(&duo).await;
    assert_eq!(text(&mut from).await.as_deref(), Some("begun"));
    within(duo.ours.shutdown()).await.expect("a good end");
    assert_eq!(within(from.recv()).await, Err(StreamRecvError::Unfinished));
    assert_eq!(within(receiver.recv()).await, Err(StreamRecvError::Unfinished));
    assert!(within(duo.theirs.accept_stream()).await.expect("no error").is_none());
    assert!(matches!(
        within(duo.ours.open_stream()).await,
        Err(StreamSendError::Association(SendError::Refused(_)))
    ));
    assert_eq!(within(sender.stopped()).await, None);
}

#[tokio::test]
async fn an_abort_reaches_all_waiting_streams() {
    let duo = Duo::connected(1, controlled()).await;
    let (mut sender, _reply) = open(&duo).await;
    send(&mut sender, "begun").await;
    let (_back, mut from) = accept(&duo).await;
    assert_eq!(text(&mut from).await.as_deref(), Some("begun"));
    duo.ours.abort();
    let ended = within(from.recv()).await.expect_err("it was aborted");
    assert!(
        matches!(ended, StreamRecvError::Association(RecvError::Closed(CloseReason::Aborted(_)))),
        "{ended:?}"
    );
    let refused = within(duo.theirs.accept_stream()).await.expect_err("it was aborted");
    assert!(matches!(refused, StreamRecvError::Association(RecvError::Closed(_))), "{refused:?}");
}

#[tokio::test]
async fn without_stream_control_no_payload_protocol_is_reserved() {
    let duo = Duo::connected(1, quick()).await;
    let options = SendOptions { ppid: 0x6162_0001, ..SendOptions::default() };
    within(duo.ours.send("any protocol", options)).await.expect("accepted");
    let came = within(duo.theirs.recv()).await.expect("no error").expect("a message");
    assert_eq!((&came.payload[..], came.ppid), (&b"any protocol"[..], options.ppid));
}

#[tokio::test]
async fn with_stream_control_the_payload_protocol_of_control_is_refused() {
    for theirs in [controlled(), quick()] {
        let endpoint = server(&[1], theirs);
        let us = client(&[11]);
        let ours = within(us.connect(peer(&us, &endpoint), controlled())).await.expect("connected");
        let (mut sender, _reply) = within(ours.open_stream()).await.expect("a stream");
        sender.set_ppid(0x6162_0001);
        let refused = within(sender.send("not control")).await;
        assert_eq!(refused, Err(StreamSendError::Association(SendError::ReservedProtocol)));
    }
}

#[tokio::test]
async fn an_association_without_stream_control_has_no_streams() {
    let duo = Duo::connected(1, quick()).await;
    assert_eq!(within(duo.ours.open_stream()).await.map(drop), Err(StreamSendError::NoStreamControl));
    assert_eq!(within(duo.theirs.accept_stream()).await.map(drop), Err(StreamRecvError::NoStreamControl));
}

/// Time without room after which the send buffer counts as full.
const STALL: Duration = Duration::from_secs(1);

/// Connects to a server that reads nothing, and sends until the send buffer is full.
async fn full_of_datagrams() -> Duo {
    let (server, client) = (server(&[1], quick()), client(&[11]));
    let config = controlled().stream_scheduler(StreamScheduler::Priority);
    let (ours, theirs) =
        tokio::join!(within(client.connect(peer(&client, &server), config)), within(server.accept()));
    let duo = Duo { ours: ours.expect("connected"), theirs: theirs.expect("accepted"), client, server };
    let options = SendOptions { unordered: true, ..SendOptions::default() };
    let mut stalls = 0;
    while stalls < 2 {
        match tokio::time::timeout(STALL, duo.ours.send(vec![0; 60_000], options)).await {
            Ok(sent) => {
                sent.expect("accepted");
                stalls = 0;
            }
            Err(_) => stalls += 1,
        }
    }
    duo
}

#[tokio::test]
async fn full_send_buffer_accepts_a_short_message_of_an_idle_stream() {
    let duo = full_of_datagrams().await;
    let (mut sender, _reply) = open(&duo).await;
    send(&mut sender, "short").await;
    let long = tokio::time::timeout(STALL, sender.send(vec![0; 5000])).await;
    assert!(long.is_err(), "the buffer is full");
}

#[tokio::test]
async fn reset_discards_the_unsent_messages_of_its_stream_only() {
    let duo = full_of_datagrams().await;
    let (mut given_up, _reply) = open(&duo).await;
    let (mut kept, _other_reply) = open(&duo).await;
    // All bulk data precedes both messages.
    for stream in [&mut given_up, &mut kept] {
        stream.set_priority(NonZeroU16::MIN);
    }
    send(&mut given_up, "discarded").await;
    send(&mut kept, "kept").await;
    given_up.reset(7).expect("open until now");
    kept.finish().expect("open until now");
    let reading = async {
        let mut short = Vec::new();
        while let Some(message) = duo.theirs.recv().await.expect("no error") {
            if !message.unordered {
                short.push(message.payload);
            }
        }
        short
    };
    let (ended, short) = within(async { tokio::join!(duo.ours.shutdown(), reading) }).await;
    ended.expect("a good end");
    assert_eq!(short, ["kept"]);
}
