//! Messages of both sides before files are fetched with a code: those of the code's exchange, then the catalogue.

use std::time::Duration;

use anabranch_identity::PublicKey;
use anabranch_identity::code::{
    Accepted, BINDING_LABEL, ChannelBinding, CodeError, Initiator, LONGEST_MESSAGE, Offer, OneTimeCode,
    Opening, is_of_version_1, is_resumed, version_1_probe,
};
use anabranch_net::{Association, SendOptions};
use anabranch_transfer::Catalogue;
use anabranch_transfer::protocol::MAX_CONTROL_BYTES;

/// Time limit of the other side for a message, during which it does not wait for its user.
const WITHIN: Duration = Duration::from_secs(15);

/// Time that a sender has to read its folders again before it sends the catalogue.
const CATALOGUE_WITHIN: Duration = Duration::from_secs(120);

/// Time in which a refusal has to be delivered.
const REFUSAL_WITHIN: Duration = Duration::from_secs(2);

/// Reason for which an exchange failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExchangeError {
    /// The exchange of the code failed.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The association ended, or no message arrived in time.
    #[error(
        "the connection ended before the code was agreed on; possibly others call there as well: try again while the other side waits"
    )]
    Gone,
    /// This association tried a wrong code and so spent the code.
    #[error(transparent)]
    Spent(CodeError),
    /// The code was agreed on, and the association ended before the catalogue arrived.
    #[error(
        "the connection ended after the code was agreed on; the code stays valid for this receiver: type the same command again"
    )]
    Lost,
}

/// Admission of an association by the sender.
pub(super) enum Admitted {
    /// The receiver has proved the code. It waits for the sender's own proof and for the catalogue.
    Proved(Accepted),
    /// The receiver has proved the code before and resumes.
    Resumed,
}

/// Proves a code to the sender, has the sender prove it as well, and returns the catalogue.
pub(super) async fn prove(association: &Association, code: &OneTimeCode) -> Result<Catalogue, ExchangeError> {
    let (initiator, first) = Initiator::start(code, binding(association).await?);
    send(association, first).await?;
    let (waiting, proof) = initiator.prove(&receive(association, LONGEST_MESSAGE, WITHIN).await?)?;
    send(association, proof).await?;
    waiting.verify(&receive(association, LONGEST_MESSAGE, WITHIN).await?)?;
    let catalogue = receive(association, MAX_CONTROL_BYTES, CATALOGUE_WITHIN).await;
    let catalogue = catalogue.map_err(|error| match error {
        ExchangeError::Gone => ExchangeError::Lost,
        error => error,
    })?;
    Catalogue::decode(&catalogue).ok_or(ExchangeError::Code(CodeError::Malformed))
}

/// Resumes at a sender to which the code was proved before.
pub(super) async fn resume(association: &Association) -> Result<(), ExchangeError> {
    send(association, anabranch_identity::code::resume()).await?;
    Ok(is_resumed(&receive(association, LONGEST_MESSAGE, WITHIN).await?)?)
}

/// Returns `true` if the sender speaks version 1, which ends an association with a later version and gives no reason. The check
/// neither reveals nor spends the code.
pub(super) async fn is_sender_of_version_1(association: &Association) -> bool {
    let answer = async {
        let probe = version_1_probe(binding(association).await?).map_err(|_| ExchangeError::Gone)?;
        send(association, probe).await?;
        receive(association, LONGEST_MESSAGE, WITHIN).await
    };
    answer.await.is_ok_and(|answer| is_of_version_1(&answer))
}

/// Admits the receiver with this key if it proves the code or resumes; otherwise reports the refusal to it. Calls `begun` once
/// it has begun to prove the code. The code is pinned or spent only if `may_prove` agrees when the proof arrives.
pub(super) async fn admit(
    association: &Association,
    (offer, key): (&Offer, PublicKey),
    begun: impl FnOnce(),
    may_prove: impl FnOnce() -> bool,
) -> Result<Admitted, ExchangeError> {
    let admitted = receive_message(association, (offer, key), begun, may_prove).await;
    if let Err(ExchangeError::Code(error) | ExchangeError::Spent(error)) = &admitted {
        let refused = async {
            let _ = send(association, error.refusal()).await;
            association.shutdown().await
        };
        let _ = tokio::time::timeout(REFUSAL_WITHIN, refused).await;
    }
    admitted
}

async fn receive_message(
    association: &Association,
    (offer, key): (&Offer, PublicKey),
    begun: impl FnOnce(),
    may_prove: impl FnOnce() -> bool,
) -> Result<Admitted, ExchangeError> {
    let first = receive(association, LONGEST_MESSAGE, WITHIN).await?;
    match offer.open(&first, &binding(association).await?, key)? {
        Opening::Resumed(answer) => {
            send(association, answer).await?;
            Ok(Admitted::Resumed)
        }
        Opening::Exchange(answered, answer) => {
            begun();
            send(association, answer).await?;
            let proof = receive(association, LONGEST_MESSAGE, WITHIN).await?;
            if !may_prove() {
                return Err(ExchangeError::Gone);
            }
            let verified = offer.verify(*answered, &proof);
            verified.map(Admitted::Proved).map_err(|error| match error {
                error if !offer.is_open() && error != CodeError::Spent => ExchangeError::Spent(error),
                error => ExchangeError::Code(error),
            })
        }
    }
}

/// Proves the code to the receiver that has proved it, and sends the catalogue.
pub(super) async fn present(
    association: &Association,
    accepted: Accepted,
    catalogue: impl Future<Output = Catalogue>,
) -> Result<(), ExchangeError> {
    let sent = async {
        send(association, accepted.message).await?;
        send(association, catalogue.await.encode()).await
    };
    match tokio::time::timeout(CATALOGUE_WITHIN, sent).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(ExchangeError::Lost),
    }
}

async fn binding(association: &Association) -> Result<ChannelBinding, ExchangeError> {
    let exported = association.export_keying_material(BINDING_LABEL, None, 32).await;
    let exported = exported.ok().and_then(|bytes| bytes.try_into().ok());
    exported.map(ChannelBinding::new).ok_or(ExchangeError::Gone)
}

async fn send(association: &Association, message: Vec<u8>) -> Result<(), ExchangeError> {
    association.send(message, SendOptions::default()).await.map_err(|_| ExchangeError::Gone)
}

async fn receive(
    association: &Association,
    longest: usize,
    within: Duration,
) -> Result<Vec<u8>, ExchangeError> {
    let received = tokio::time::timeout(within, association.recv()).await;
    let Ok(Ok(Some(message))) = received else { return Err(ExchangeError::Gone) };
    let is_whole = message.beginning && message.ending && message.payload.len() <= longest;
    if is_whole { Ok(message.payload.to_vec()) } else { Err(CodeError::Malformed.into()) }
}
