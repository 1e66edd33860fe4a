//! Channels of two sides that follow the protocol.

use anabranch_datachannel::{
    ChannelError, ChannelEvent, ChannelReliability, CloseCause, Limits, MessageKind, Settings,
};

use crate::pair::{CLIENT, Pair, SERVER, STREAMS};

fn message(id: u16, kind: MessageKind, payload: &[u8]) -> ChannelEvent {
    ChannelEvent::Message { id, kind, payload: payload.to_vec() }
}

#[test]
fn settings_and_messages_of_each_kind_arrive_unchanged() {
    let mut pair = Pair::new(Limits::default(), 0.0, 1);
    let settings = Settings {
        protocol: "game.v2".to_owned(),
        ordered: false,
        reliability: ChannelReliability::LifetimeMs(500),
        priority: 512,
        ..Settings::new("moves")
    };
    let id = pair.open(SERVER, settings.clone());
    pair.send(SERVER, id, MessageKind::Text, "früh".as_bytes());
    pair.run(1);
    for (kind, payload) in
        [(MessageKind::Binary, &[0, 255][..]), (MessageKind::Text, b""), (MessageKind::Binary, b"")]
    {
        pair.send(CLIENT, id, kind, payload);
        pair.run(1);
    }
    let arrived =
        [ChannelEvent::Incoming { id, settings }, message(id, MessageKind::Text, "früh".as_bytes())];
    assert_eq!(pair.take_events(CLIENT), arrived);
    let answered = [
        ChannelEvent::Opened(id),
        message(id, MessageKind::Binary, &[0, 255]),
        message(id, MessageKind::Text, b""),
        message(id, MessageKind::Binary, b""),
    ];
    assert_eq!(pair.take_events(SERVER), answered);
}

#[test]
fn closing_delivers_earlier_messages_and_frees_the_identifier() {
    for (seed, closer) in (0..20).flat_map(|seed| [(seed, CLIENT), (seed, SERVER)]) {
        let mut pair = Pair::new(Limits::default(), 0.1, seed);
        for round in 0..3 {
            let label = format!("round {round}");
            let id = pair.open(CLIENT, Settings::new(&label));
            assert!(pair.run_until(60, |pair| pair.channels[SERVER].settings(id).is_some()));
            pair.send(closer, id, MessageKind::Text, label.as_bytes());
            pair.close(closer, id);
            let ended = |pair: &Pair| pair.channels.iter().all(|channels| channels.settings(id).is_none());
            assert!(pair.run_until(60, ended), "seed {seed}: the channel does not end");
            let events = pair.take_events(1 - closer);
            assert!(events.contains(&message(id, MessageKind::Text, label.as_bytes())), "{events:?}");
            assert_eq!(events.last(), Some(&ChannelEvent::Closed { id, cause: CloseCause::Peer }));
            let cause = CloseCause::Local;
            assert_eq!(pair.take_events(closer).last(), Some(&ChannelEvent::Closed { id, cause }));
            assert_eq!(id, 0, "the lowest identifier is free again");
        }
    }
}

#[test]
fn closing_on_both_sides_at_once_ends_the_channel_once() {
    let mut pair = Pair::new(Limits::default(), 0.0, 1);
    let id = pair.open(CLIENT, Settings::new("both"));
    pair.run(1);
    pair.close(CLIENT, id);
    pair.close(SERVER, id);
    pair.run(5);
    let closed = ChannelEvent::Closed { id, cause: CloseCause::Local };
    for side in [CLIENT, SERVER] {
        let events = pair.take_events(side);
        assert_eq!(events.iter().filter(|event| **event == closed).count(), 1, "{events:?}");
    }
}

#[test]
fn each_side_opens_as_many_channels_as_it_has_streams() {
    let mut pair = Pair::new(Limits::default(), 0.0, 1);
    for side in [CLIENT, SERVER] {
        let ids: Vec<u16> = (0..STREAMS / 2).map(|_| pair.open(side, Settings::new("x"))).collect();
        assert_eq!(ids, (side as u16..STREAMS).step_by(2).collect::<Vec<_>>());
        let another = pair.on(side, |channels, now, association| {
            channels.open(now, association, Settings::new("one more"))
        });
        assert_eq!(another, Err(ChannelError::NoStream { streams: STREAMS / 2 }));
    }
}

#[test]
fn negotiated_channel_needs_no_message() {
    let mut pair = Pair::new(Limits::default(), 0.0, 1);
    for side in [CLIENT, SERVER] {
        assert_eq!(pair.add_negotiated(side, 7), Ok(()));
    }
    assert_eq!(pair.add_negotiated(CLIENT, 7), Err(ChannelError::InUse { id: 7 }));
    let unnegotiable = ChannelError::Unnegotiable { id: STREAMS, streams: STREAMS };
    assert_eq!(pair.add_negotiated(CLIENT, STREAMS), Err(unnegotiable));
    pair.send(CLIENT, 7, MessageKind::Text, b"hi");
    pair.run(1);
    assert_eq!(pair.take_events(SERVER), [message(7, MessageKind::Text, b"hi")]);
}

/// The sides send at once, so this covers the channel's opener and the other side. The protocol permits the priority 0.
#[test]
fn channels_share_the_rate_of_each_side_by_their_priorities() {
    let mut pair = Pair::new(Limits::default(), 0.0, 1);
    let mut open = |priority| pair.open(CLIENT, Settings { priority, ..Settings::new("bulk") });
    let [low, high, none] = [256, 1024, 0].map(&mut open);
    pair.run(1);
    for side in [CLIENT, SERVER] {
        pair.take_events(side);
        for _ in 0..100 {
            for id in [none, low, high] {
                pair.send(side, id, MessageKind::Binary, &[0; 2000]);
            }
        }
    }
    pair.run(5);
    for side in [CLIENT, SERVER] {
        let received = pair.take_events(side);
        let ids = received.iter().filter_map(|event| match event {
            ChannelEvent::Message { id, .. } => Some(*id),
            _ => None,
        });
        let first: Vec<_> = ids.take(100).collect();
        let count = |id| first.iter().filter(|other| **other == id).count();
        assert!((75..=85).contains(&count(high)), "{} of 100 messages have 4/5 of the weight", count(high));
        assert!(count(none) <= 1, "{} of 100 messages have 1/1281 of the weight", count(none));
    }
}

#[test]
fn ended_channels_and_large_messages_are_refused() {
    let mut pair = Pair::new(Limits { sent_bytes: 10, ..Limits::default() }, 0.0, 1);
    let id = pair.open(CLIENT, Settings::new("small"));
    let send = |pair: &mut Pair, bytes: usize| {
        let payload = vec![0; bytes].into();
        pair.on(CLIENT, |channels, now, association| {
            channels.send(now, association, id, (MessageKind::Binary, payload))
        })
    };
    assert_eq!(send(&mut pair, 10), Ok(()));
    assert_eq!(send(&mut pair, 11), Err(ChannelError::TooLarge { bytes: 11, limit: 10 }));
    pair.close(CLIENT, id);
    assert_eq!(send(&mut pair, 1), Err(ChannelError::NoChannel { id }));
    let again = pair.on(CLIENT, |channels, now, association| channels.close(now, association, id));
    assert_eq!(again, Err(ChannelError::NoChannel { id }));
}

#[test]
fn application_that_does_not_poll_stops_the_peer() {
    let mut pair = Pair::new(Limits { sent_bytes: 1 << 20, ..Limits::default() }, 0.0, 1);
    let id = pair.open(CLIENT, Settings::new("bulk"));
    pair.run(1);
    pair.reads[SERVER] = false;
    let mut sent = 0;
    loop {
        let payload = vec![0; 64 << 10].into();
        let accepted = pair.on(CLIENT, |channels, now, association| {
            channels.send(now, association, id, (MessageKind::Binary, payload))
        });
        match accepted {
            Ok(()) => sent += 1,
            Err(ChannelError::Association(_)) => break,
            Err(error) => panic!("{error}"),
        }
        pair.run(1);
        assert!(sent < 1000, "nothing stops the sender");
    }
    pair.reads[SERVER] = true;
    pair.run(60);
    let arrived = pair.take_events(SERVER).into_iter();
    assert_eq!(arrived.filter(|event| matches!(event, ChannelEvent::Message { .. })).count(), sent);
}

#[test]
fn reset_seen_before_a_channel_is_read_ends_it_after_its_messages() {
    let mut pair = Pair::new(Limits::default(), 0.0, 1);
    pair.reads[SERVER] = false;
    let id = pair.open(CLIENT, Settings::new("brief"));
    pair.send(CLIENT, id, MessageKind::Text, b"bye");
    pair.close(CLIENT, id);
    pair.run(5);
    pair.reads[SERVER] = true;
    pair.run(5);
    let whole = [
        ChannelEvent::Incoming { id, settings: Settings::new("brief") },
        message(id, MessageKind::Text, b"bye"),
        ChannelEvent::Closed { id, cause: CloseCause::Peer },
    ];
    assert_eq!(pair.take_events(SERVER), whole);
    assert!(pair.channels[CLIENT].settings(id).is_none(), "the other end is over too");
}

#[test]
fn second_channel_on_a_stream_is_read_after_its_reset_too() {
    let mut pair = Pair::new(Limits::default(), 0.0, 1);
    let id = pair.open(CLIENT, Settings::new("first"));
    pair.run(1);
    pair.take_events(SERVER);
    pair.reads[SERVER] = false;
    pair.close(CLIENT, id);
    pair.run(5);
    assert_eq!(pair.open(CLIENT, Settings::new("second")), id);
    pair.close(CLIENT, id);
    pair.run(5);
    pair.reads[SERVER] = true;
    pair.run(5);
    let closed = ChannelEvent::Closed { id, cause: CloseCause::Peer };
    let incoming = ChannelEvent::Incoming { id, settings: Settings::new("second") };
    assert_eq!(pair.take_events(SERVER), [closed.clone(), incoming, closed]);
    assert!(pair.channels[CLIENT].settings(id).is_none(), "the other end is over too");
}
