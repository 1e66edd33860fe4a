//! A receiver that refuses one block many times at once.

use std::fs;
use std::time::Duration;

use anabranch_hostile::{Heard, Inbox, Packet, Peer, Serving, root};
use anabranch_transfer::protocol::{Answer, Message, Reason};
use anabranch_transfer::{BLOCK_BYTES, Hash, OnClash, ServerOptions};

const MIB: usize = BLOCK_BYTES as usize;
/// As many as a sender takes before it gives a file up. Two are enough if none is read again in between.
const REFUSALS: usize = 16;

#[test]
fn a_block_that_is_refused_many_times_at_once_leaves_the_root_as_it_is() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let within = async { tokio::time::timeout(Duration::from_secs(60), refuse()).await };
    runtime.expect("a runtime").block_on(within).expect("in time");
}

async fn refuse() {
    let inbox = Inbox::new().expect("made");
    let mut content = vec![0; 3 * MIB];
    fastrand::Rng::with_seed(1).fill(&mut content);
    fs::write(inbox.path().join("file"), &content).expect("written");
    let serving = Serving::start(inbox.store(OnClash::Refuse), ServerOptions::default());
    let peer = Peer::pull_from(&serving.host, [1; 16], 1, &["file"]).await.expect("welcome");
    let offer = peer.hear_until(|message| matches!(message, Message::Offer(_))).await.expect("an offer");
    let Message::Offer(offer) = offer else { unreachable!() };
    let take = Message::Answer { id: offer.id, answer: Answer::Take { have: Vec::new() } };
    peer.say(&take).await.expect("said");
    let mut is_refused = false;
    // Either the sender ends the transfer, or all goes well.
    loop {
        match peer.hear().await {
            Heard::Data(segment) if segment.hash.is_some() && !is_refused => {
                is_refused = true;
                let refusal =
                    Packet::control(&Message::Block { id: offer.id, index: segment.index, good: false });
                peer.send_all(&vec![refusal; REFUSALS]).await.expect("sent");
            }
            Heard::Data(segment) if segment.hash.is_some() => {
                let held = Message::Block { id: offer.id, index: segment.index, good: true };
                peer.say(&held).await.expect("said");
            }
            Heard::Control(Message::End { root: said, .. }) => {
                return assert_eq!(
                    said,
                    root(content.chunks(MIB).map(Hash::of)),
                    "the sender says another root"
                );
            }
            Heard::Control(Message::Fail(failure)) => return assert_eq!(failure.reason, Reason::Protocol),
            Heard::Ended => panic!("the sender says nothing at its end"),
            _ => {}
        }
    }
}
