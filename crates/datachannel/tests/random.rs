//! Random interactions of both sides over a network that loses packets.

use std::collections::BTreeMap;

use anabranch_datachannel::{ChannelEvent, ChannelId, Limits, MessageKind, Settings};

use crate::pair::{CLIENT, Pair, SERVER, STREAMS};

/// Messages by the label of their channel, in order.
type Messages = BTreeMap<String, Vec<Vec<u8>>>;

#[derive(Default)]
struct Side {
    /// Labels of open channels.
    open: BTreeMap<ChannelId, String>,
    sent: Messages,
    received: Messages,
}

impl Side {
    fn apply(&mut self, event: ChannelEvent) {
        match event {
            ChannelEvent::Incoming { id, settings } => {
                self.open.insert(id, settings.label);
            }
            ChannelEvent::Message { id, payload, .. } => {
                let label = self.open.get(&id).expect("its channel is open").clone();
                self.received.entry(label).or_default().push(payload);
            }
            ChannelEvent::Closed { id, .. } => {
                self.open.remove(&id);
            }
            _ => {}
        }
    }
}

/// Makes a random call on one side. `turn` makes labels and payloads unique.
fn act(pair: &mut Pair, sides: &mut [Side; 2], dice: &mut fastrand::Rng, turn: u32) {
    let side = dice.usize(..2);
    let ids: Vec<ChannelId> = sides[side].open.keys().copied().collect();
    let id = if ids.is_empty() { None } else { Some(ids[dice.usize(..ids.len())]) };
    match (dice.u8(..10), id) {
        (0..3, _) => {
            let label = format!("{side}/{turn}");
            let settings = Settings::new(&label);
            let opened =
                pair.on(side, |channels, now, association| channels.open(now, association, settings));
            if let Ok(id) = opened {
                sides[side].open.insert(id, label);
            }
        }
        (3..9, Some(id)) => {
            let payload = [&turn.to_be_bytes()[..], &vec![0; dice.usize(..3000)]].concat();
            let sent = pair.on(side, |channels, now, association| {
                channels.send(now, association, id, (MessageKind::Binary, payload.clone().into()))
            });
            if sent.is_ok() {
                let label = sides[side].open[&id].clone();
                sides[side].sent.entry(label).or_default().push(payload);
            }
        }
        (9, Some(id)) => {
            // The channel may have been closed already.
            let _ = pair.on(side, |channels, now, association| channels.close(now, association, id));
        }
        _ => {}
    }
}

fn take(pair: &mut Pair, sides: &mut [Side; 2]) {
    for side in [CLIENT, SERVER] {
        for event in pair.take_events(side) {
            sides[side].apply(event);
        }
    }
}

#[test]
fn messages_arrive_in_order_on_their_channel_until_it_is_closed() {
    for seed in 0..200 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut pair = Pair::new(Limits::default(), 0.05, seed);
        let mut sides = [Side::default(), Side::default()];
        for turn in 0..120 {
            act(&mut pair, &mut sides, &mut dice, turn);
            if dice.bool() {
                // Events of one step are applied before identifiers can be used again.
                pair.run_until(1, |pair| pair.events.iter().any(|events| !events.is_empty()));
                take(&mut pair, &mut sides);
            }
        }
        for (side, id) in (0..STREAMS).flat_map(|id| [(CLIENT, id), (SERVER, id)]) {
            // Not every stream has a channel.
            let _ = pair.on(side, |channels, now, association| channels.close(now, association, id));
        }
        let ended =
            |pair: &Pair| (0..STREAMS).all(|id| pair.channels.iter().all(|c| c.settings(id).is_none()));
        let over = pair.run_until(300, ended);
        assert!(over, "seed {seed}: a channel does not end: {:?}", pair.channels);
        take(&mut pair, &mut sides);
        for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
            for (label, received) in &sides[to].received {
                let sent = &sides[from].sent[label];
                assert_eq!(received[..], sent[..received.len()], "seed {seed}, channel {label}");
            }
            let count = |messages: &Messages| messages.values().map(Vec::len).sum::<usize>();
            assert!(count(&sides[to].received) > 0, "seed {seed}: nothing arrives");
        }
    }
}
