use proptest::prelude::*;

use super::*;
use crate::testing::key;

fn code(text: &str) -> OneTimeCode {
    text.parse().expect("a code")
}

fn binding(byte: u8) -> ChannelBinding {
    ChannelBinding::new([byte; 32])
}

/// Passes the first message of an initiator to an offer. `by` determines the initiator's key, `bound` its channel binding.
fn open(offer: &Offer, message: &[u8], by: u8, bound: u8) -> Result<(Answered, Vec<u8>), CodeError> {
    match offer.open(message, &binding(bound), key(by))? {
        Opening::Exchange(answered, answer) => Ok((*answered, answer)),
        Opening::Resumed(_) => panic!("the message is a share, not a resumption"),
    }
}

/// Runs an exchange in which the initiator types the code `typed`. Returns the results of the responder and, if it accepted the
/// proof, of the initiator.
fn exchange(
    offer: &Offer,
    (typed, by): (&str, u8),
    bindings: [u8; 2],
) -> (Result<(), CodeError>, Option<Result<(), CodeError>>) {
    let (initiator, first) = Initiator::start(&code(typed), binding(bindings[0]));
    let (answered, answer) = match open(offer, &first, by, bindings[1]) {
        Ok(both) => both,
        Err(error) => return (Err(error), None),
    };
    let (waiting, proof) = initiator.prove(&answer).expect("an answer");
    match offer.verify(answered, &proof) {
        Ok(accepted) => (Ok(()), Some(waiting.verify(&accepted.message))),
        Err(error) => (Err(error), None),
    }
}

#[test]
fn first_proof_pins_code_to_a_key_that_may_repeat_it() {
    let offer = Offer::new(code("7-apple-river"));
    assert_eq!((offer.is_open(), offer.holder()), (true, None));
    for _ in 0..3 {
        assert_eq!(exchange(&offer, ("7-apple-river", 1), [1, 1]), (Ok(()), Some(Ok(()))));
        assert_eq!((offer.is_open(), offer.holder()), (true, Some(key(1))));
    }
    assert_eq!(exchange(&offer, ("7-apple-river", 2), [1, 1]), (Err(CodeError::InUse), None));
    assert_eq!(offer.holder(), Some(key(1)));
}

#[test]
fn one_wrong_guess_spends_the_code() {
    let offer = Offer::new(code("7-apple-river"));
    assert_eq!(exchange(&offer, ("8-apple-river", 1), [1, 1]), (Err(CodeError::Wrong), None));
    assert!(!offer.is_open());
    assert_eq!(exchange(&offer, ("7-apple-river", 1), [1, 1]), (Err(CodeError::Spent), None));
}

#[test]
fn wrong_code_of_the_holder_keeps_the_code() {
    let offer = Offer::new(code("7-apple-river"));
    assert_eq!(exchange(&offer, ("7-apple-river", 1), [1, 1]).0, Ok(()));
    assert_eq!(exchange(&offer, ("8-apple-river", 1), [1, 1]), (Err(CodeError::Wrong), None));
    assert_eq!(exchange(&offer, ("7-apple-river", 1), [1, 1]).0, Ok(()));
}

#[test]
fn only_the_holder_resumes() {
    let offer = Offer::new(code("7-apple-river"));
    let resumed = |by| match offer.open(&resume(), &binding(1), key(by)) {
        Ok(Opening::Resumed(answer)) => is_resumed(&answer),
        Ok(Opening::Exchange(..)) => panic!("the message is a resumption, not a share"),
        Err(error) => {
            assert_eq!(is_resumed(&error.refusal()), Err(error));
            Err(error)
        }
    };
    assert_eq!(resumed(1), Err(CodeError::Unknown));
    assert_eq!(exchange(&offer, ("7-apple-river", 1), [1, 1]).0, Ok(()));
    assert_eq!((resumed(1), resumed(2)), (Ok(()), Err(CodeError::InUse)));
}

#[test]
fn guesses_at_the_same_time_are_one_guess() {
    let offer = Offer::new(code("7-apple-river"));
    let begin = |typed, by| {
        let (initiator, first) = Initiator::start(&code(typed), binding(1));
        let (answered, answer) = open(&offer, &first, by, 1).expect("no proof yet");
        (answered, initiator.prove(&answer).expect("an answer").1)
    };
    let (wrong, wrong_proof) = begin("8-apple-river", 1);
    let (right, right_proof) = begin("7-apple-river", 2);
    assert_eq!(offer.verify(wrong, &wrong_proof).expect_err("wrong"), CodeError::Wrong);
    assert_eq!(offer.verify(right, &right_proof).expect_err("too late"), CodeError::Spent);
}

#[test]
fn wrong_guess_after_the_right_proof_changes_nothing() {
    let offer = Offer::new(code("7-apple-river"));
    let (initiator, first) = Initiator::start(&code("8-apple-river"), binding(1));
    let (late, answer) = open(&offer, &first, 2, 1).expect("no proof yet");
    let proof = initiator.prove(&answer).expect("an answer").1;
    assert_eq!(exchange(&offer, ("7-apple-river", 1), [1, 1]).0, Ok(()));
    assert_eq!(offer.verify(late, &proof).expect_err("too late"), CodeError::InUse);
    assert_eq!(offer.holder(), Some(key(1)));
}

#[test]
fn proof_relayed_between_two_connections_is_refused() {
    let offer = Offer::new(code("7-apple-river"));
    assert_eq!(exchange(&offer, ("7-apple-river", 1), [1, 2]), (Err(CodeError::Wrong), None));
}

#[test]
fn reflected_proof_is_refused() {
    let offer = Offer::new(code("7-apple-river"));
    let (initiator, first) = Initiator::start(&code("7-apple-river"), binding(1));
    let (_, answer) = open(&offer, &first, 1, 1).expect("open");
    let (waiting, proof) = initiator.prove(&answer).expect("an answer");
    assert_eq!(waiting.verify(&proof), Err(CodeError::Wrong));
    // A share is not a valid answer either.
    let (initiator, first) = Initiator::start(&code("7-apple-river"), binding(1));
    assert!(matches!(initiator.prove(&first), Err(CodeError::Malformed)));
}

#[test]
fn each_version_learns_the_version_of_the_other() {
    let offer = Offer::new(code("7-apple-river"));
    // A receiver of version 1 contacts this offer.
    let old = version_1_probe(binding(1)).expect("random");
    let refused = open(&offer, &old, 1, 1).err().expect("another version");
    assert_eq!(refused, CodeError::Version(1));
    let text = refused.to_string();
    assert!(text.contains("version 1 of") && text.contains("program version 2"), "{text}");
    assert!(!is_of_version_1(&refused.refusal()) && is_of_version_1(&old));
    // This receiver contacts a sender of version 3 that refuses it, and one that answers.
    for answer in [&[3, 0][..], &[3; LONGEST_MESSAGE]] {
        let (initiator, _) = Initiator::start(&code("7-apple-river"), binding(1));
        assert_eq!(initiator.prove(answer).err(), Some(CodeError::Version(3)));
    }
    assert_eq!(exchange(&offer, ("7-apple-river", 1), [1, 1]).0, Ok(()), "nothing was spent");
}

#[test]
fn refusals_are_reported_in_place_of_each_answer() {
    for error in [CodeError::Malformed, CodeError::Wrong, CodeError::Spent, CodeError::InUse] {
        let offer = Offer::new(code("7-apple-river"));
        let (initiator, first) = Initiator::start(&code("7-apple-river"), binding(1));
        let (_, answer) = open(&offer, &first, 1, 1).expect("open");
        let (waiting, _) = initiator.prove(&answer).expect("an answer");
        assert_eq!(waiting.verify(&error.refusal()), Err(error));
        let (initiator, _) = Initiator::start(&code("7-apple-river"), binding(1));
        assert_eq!(initiator.prove(&error.refusal()).err(), Some(error));
    }
}

#[test]
fn secrets_are_not_shown() {
    let offer = Offer::new(code("7-apple-river"));
    let shown = format!("{offer:?} {:?}", binding(0xAB));
    assert!(!shown.contains("apple") && !shown.contains("171"), "{shown}");
}

proptest! {
    #[test]
    fn any_message_is_refused_or_answered(message in prop::collection::vec(any::<u8>(), 0..40), with_version in any::<bool>()) {
        let mut message = message;
        if with_version && !message.is_empty() {
            message[0] = EXCHANGE_VERSION;
        }
        let offer = Offer::new(code("7-apple-river"));
        prop_assert!(open(&offer, &message, 1, 1).is_err() || message.len() == LONGEST_MESSAGE);
        let _ = is_resumed(&message);
        let (initiator, first) = Initiator::start(&code("7-apple-river"), binding(1));
        let _ = initiator.prove(&message);
        let (answered, _) = open(&offer, &first, 1, 1).expect("open");
        prop_assert!(offer.verify(answered, &message).is_err());
    }
}
