//! What both sides say before files are fetched with a code: the messages of the code's exchange, then what is offered.

use std::time::Duration;

use anabranch_identity::code::{
    Accepted, BINDING_LABEL, ChannelBinding, CodeError, Initiator, LONGEST_MESSAGE, Offer, OneTimeCode,
};
use anabranch_net::{Association, SendOptions};
use anabranch_transfer::Catalogue;
use anabranch_transfer::protocol::MAX_CONTROL_BYTES;

/// How long the other side may take for a message: no person is asked for anything meanwhile.
const WITHIN: Duration = Duration::from_secs(15);

/// Why an exchange came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExchangeError {
    /// The code was not agreed on.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The association ended, or nothing came.
    #[error(
        "the other side went away before the code was agreed on; check whether it still waits, and with which code"
    )]
    Gone,
    /// This association used the code up, and did not know it.
    #[error(transparent)]
    Used(CodeError),
    /// This association proved the code, and ended before it heard what is offered.
    #[error(
        "whoever knew the code was lost before anything was offered, and the code is used up; start again for another one"
    )]
    Lost,
}

/// Proves a code to the other side, has it prove the code as well, and gives what it offers.
pub(super) async fn prove(association: &Association, code: &OneTimeCode) -> Result<Catalogue, ExchangeError> {
    let (initiator, first) = Initiator::start(code, binding(association).await?);
    send(association, first).await?;
    let (waiting, proof) = initiator.prove(&receive(association, LONGEST_MESSAGE).await?)?;
    send(association, proof).await?;
    waiting.verify(&receive(association, LONGEST_MESSAGE).await.map_err(|_| CodeError::Wrong)?)?;
    let catalogue = receive(association, MAX_CONTROL_BYTES).await?;
    Catalogue::decode(&catalogue).ok_or(ExchangeError::Code(CodeError::Malformed))
}

/// Lets the other side prove a code. The code is used up only if `may_prove` agrees at the moment at which a proof is there.
pub(super) async fn check(
    association: &Association,
    offer: &Offer,
    may_prove: impl FnOnce() -> bool,
) -> Result<Accepted, ExchangeError> {
    let binding = binding(association).await?;
    let (answered, answer) = offer.answer(&receive(association, LONGEST_MESSAGE).await?, &binding)?;
    send(association, answer).await?;
    let proof = receive(association, LONGEST_MESSAGE).await?;
    if !may_prove() {
        return Err(ExchangeError::Gone);
    }
    offer.verify(answered, &proof).map_err(|error| match error {
        // Another association did that.
        CodeError::Spent => ExchangeError::Code(error),
        CodeError::Wrong | CodeError::Malformed => ExchangeError::Used(error),
    })
}

/// Proves the code to whoever has proved it, and says what is offered.
pub(super) async fn present(
    association: &Association,
    accepted: Accepted,
    catalogue: &Catalogue,
) -> Result<(), ExchangeError> {
    let sent = async {
        send(association, accepted.message).await?;
        send(association, catalogue.encode()).await
    };
    match tokio::time::timeout(WITHIN, sent).await {
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

async fn receive(association: &Association, longest: usize) -> Result<Vec<u8>, ExchangeError> {
    let received = tokio::time::timeout(WITHIN, association.recv()).await;
    let Ok(Ok(Some(message))) = received else { return Err(ExchangeError::Gone) };
    let is_whole = message.beginning && message.ending && message.payload.len() <= longest;
    if is_whole { Ok(message.payload.to_vec()) } else { Err(CodeError::Malformed.into()) }
}
