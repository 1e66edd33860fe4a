//! Small messages on streams beside bulk data that fills the send buffer.

use std::num::NonZeroU16;
use std::time::{Duration, Instant};

use anabranch_net::{Association, RecvStream, SendStream, StreamScheduler};
use anabranch_tests::credentials::Mode;
use bytes::Bytes;

use crate::wire::rig::{Link, Wire, usual, within};

const BULK_STREAMS: usize = 8;
const BULK_BYTES: usize = 16 << 10;
const LINK: Link = Link { mbps: 8, delay_ms: 10, loss: 0.0 };
/// Round-trip time without other data, and half of the time in which each bulk stream sends one message.
const MOST_MS: u64 = 20 + (BULK_STREAMS * BULK_BYTES * 8) as u64 / 8_000 / 2;
/// Number of keystrokes on each stream.
const KEYSTROKES: usize = 12;

/// Echoes messages of one byte, and discards others.
async fn echo(theirs: Association) {
    while let Ok(Some((mut sender, mut receiver))) = theirs.accept_stream().await {
        tokio::spawn(async move {
            while let Ok(Some(message)) = receiver.recv().await {
                if message.payload.len() == 1 && sender.send(message.payload).await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn fill(mut sender: SendStream) {
    let bytes = Bytes::from(vec![0; BULK_BYTES]);
    while sender.send(bytes.clone()).await.is_ok() {}
}

/// Returns the time between a keystroke and its echo.
async fn keystroke(stream: &mut (SendStream, RecvStream)) -> Duration {
    let begun = Instant::now();
    stream.0.send("k").await.expect("accepted");
    stream.1.recv().await.expect("no error").expect("an echo");
    begun.elapsed()
}

#[tokio::test]
async fn keystrokes_of_each_priority_pass_waiting_downloads() {
    let config = usual().stream_control().streams(64).stream_scheduler(StreamScheduler::WeightedFairQueueing);
    let wire = Wire::connected(Mode::Plain, &[LINK], config).await;
    tokio::spawn(echo(wire.theirs.clone()));
    for _ in 0..BULK_STREAMS {
        let (sender, _) = within(wire.ours.open_stream()).await.expect("a stream");
        tokio::spawn(fill(sender));
    }
    let mut normal = within(wire.ours.open_stream()).await.expect("a stream");
    let mut urgent = within(wire.ours.open_stream()).await.expect("a stream");
    urgent.0.set_priority(NonZeroU16::new(4096).expect("above zero"));
    let (mut of_normal, mut of_urgent) = (Vec::new(), Vec::new());
    // The first keystrokes of each stream see the buffer while it fills.
    within(keystroke(&mut normal)).await;
    for _ in 0..KEYSTROKES {
        of_urgent.push(within(keystroke(&mut urgent)).await);
        of_normal.push(within(keystroke(&mut normal)).await);
    }
    of_normal.sort_unstable();
    of_urgent.sort_unstable();
    println!("with priority: {of_urgent:?}, without: {of_normal:?}");
    for times in [of_urgent, of_normal] {
        assert!(times[KEYSTROKES / 2] < Duration::from_millis(MOST_MS), "{times:?}");
    }
}

#[tokio::test]
async fn stream_of_sixteen_times_the_weight_sends_more_than_eight_times_as_much() {
    let config = usual().stream_control().streams(64).stream_scheduler(StreamScheduler::WeightedFairQueueing);
    let wire = Wire::connected(Mode::Plain, &[LINK], config).await;
    let (mut normal, _) = within(wire.ours.open_stream()).await.expect("a stream");
    let (mut urgent, _) = within(wire.ours.open_stream()).await.expect("a stream");
    urgent.set_priority(NonZeroU16::new(4096).expect("above zero"));
    // The peer accepts the streams in this order.
    within(normal.send(vec![0; BULK_BYTES])).await.expect("accepted");
    let (_, mut of_normal) = within(wire.theirs.accept_stream()).await.expect("no error").expect("a stream");
    tokio::spawn(fill(normal));
    tokio::spawn(fill(urgent));
    let (_, mut of_urgent) = within(wire.theirs.accept_stream()).await.expect("no error").expect("a stream");
    let (mut normal_messages, mut urgent_messages) = (0, 0);
    let receiving = async {
        while urgent_messages < 64 {
            tokio::select! {
                message = of_normal.recv() => normal_messages += usize::from(message.is_ok()),
                message = of_urgent.recv() => urgent_messages += usize::from(message.is_ok()),
            }
        }
    };
    within(receiving).await;
    assert!(normal_messages * 8 < 64, "{normal_messages} beside 64");
}
