//! Exchange of a request and its answer on a stream.

use std::time::Duration;

use anabranch_net::{RecvStream, SendStream};
use tokio::time::timeout;

use crate::failure::Failure;
use crate::message::{Answer, MAX_REQUEST_BYTES, Request};

/// Time for the request of a stream to arrive, and for an answer to be accepted.
const MESSAGE_WITHIN: Duration = Duration::from_secs(10);

/// Returns the request of a stream that the peer has opened.
pub(crate) async fn read_request(receiver: &mut RecvStream) -> Result<Request, Failure> {
    let received = timeout(MESSAGE_WITHIN, receiver.recv()).await.map_err(|_| Failure::TimedOut)?;
    match received {
        Ok(Some(message)) if message.is_whole() && message.payload.len() <= MAX_REQUEST_BYTES => {
            Request::decode(&message.payload)
        }
        _ => Err(Failure::Malformed),
    }
}

/// Sends the answer to a request. A peer that does not receive it loses the stream.
pub(crate) async fn answer(sender: &mut SendStream, answer: Answer) -> Result<(), ()> {
    let sent = timeout(MESSAGE_WITHIN, sender.send(answer.encode())).await;
    sent.map_err(drop)?.map_err(drop)
}

/// Refuses a request.
pub(crate) async fn refuse(mut sender: SendStream, failure: Failure) {
    if answer(&mut sender, Answer::Failed(failure)).await.is_ok() {
        // The stream may have ended in the meantime.
        let _ = sender.finish();
    }
}

/// Outcome of a request to the peer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The peer has answered; this is its port.
    Ready(u16),
    /// The peer refuses.
    Failed(Failure),
    /// The stream ended before the answer.
    Lost,
}

/// Sends a request and returns the outcome.
pub(crate) async fn request(
    sender: &mut SendStream,
    receiver: &mut RecvStream,
    request: &Request,
) -> Outcome {
    if sender.send(request.encode()).await.is_err() {
        return Outcome::Lost;
    }
    match receiver.recv().await {
        Ok(Some(message)) if message.is_whole() => match Answer::decode(&message.payload) {
            Ok(Answer::Ready { port }) => Outcome::Ready(port),
            Ok(Answer::Failed(failure)) | Err(failure) => Outcome::Failed(failure),
        },
        Ok(_) => Outcome::Failed(Failure::Malformed),
        Err(_) => Outcome::Lost,
    }
}
