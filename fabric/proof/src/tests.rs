use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::format;
use std::vec::Vec;

const PURPOSE: Purpose = Purpose { service: 3, from: 7, to: 2, lane: 1 };

fn ends(theirs: &[u8], own: &[u8]) -> (Handshake, Handshake) {
    (Handshake::connect(Secret::new(theirs), PURPOSE, [1; 32]), Handshake::accept(Secret::new(own), 3, 2, [2; 32]))
}

/// The keys of the connection that the two begin when they share the secret `material`.
fn keys(material: &[u8]) -> Keys {
    let nonce = [1; 32];
    let purpose = PURPOSE;
    Secret::new(material).keys(&Challenge { purpose, nonce }, &[2; 32])
}

/// Moves what `from` has to say, `piece` bytes at a time.
fn pass(from: &mut Handshake, to: &mut Handshake, piece: usize) -> Result<(), Refused> {
    while !from.output().is_empty() {
        let bytes: Vec<u8> = from.output().iter().copied().take(piece).collect();
        to.receive(&bytes)?;
        from.sent(bytes.len());
    }
    Ok(())
}

#[test]
fn both_ends_of_a_job_prove_themselves() {
    for piece in [1, 7, 100] {
        let (mut initiator, mut acceptor) = ends(b"secret", b"secret");
        assert_eq!((acceptor.wanted(), acceptor.output().len()), (HELLO, 0));
        pass(&mut initiator, &mut acceptor, piece).expect("a challenge");
        assert!(acceptor.proven().is_none() && initiator.proven().is_none());
        pass(&mut acceptor, &mut initiator, piece).expect("an answer");
        assert!(initiator.proven().is_none(), "its answer is not written");
        pass(&mut initiator, &mut acceptor, piece).expect("the other answer");
        let (one, other) = (initiator.proven(), acceptor.proven());
        let (one, other) = (one.expect("proven"), other.expect("proven"));
        assert_eq!((one.purpose, other.purpose), (PURPOSE, PURPOSE));
        let bytes = |proven: &Proven| {
            let Keys { to_acceptor, to_initiator } = proven.keys.clone();
            (*to_acceptor.as_bytes(), *to_initiator.as_bytes())
        };
        assert_eq!(bytes(one), bytes(other));
        assert_ne!(bytes(one).0, bytes(one).1);
        assert_eq!((initiator.wanted(), acceptor.wanted()), (0, 0));
        // What follows is not the proof's business.
        acceptor.receive(b"a message").expect("ignored");
        assert!(acceptor.proven().is_some());
    }
}

#[test]
fn the_secret_does_not_travel() {
    let (mut initiator, mut acceptor) = ends(&[0xAB; 16], &[0xAB; 16]);
    let mut wire = initiator.output().to_vec();
    pass(&mut initiator, &mut acceptor, 99).expect("a challenge");
    wire.extend(acceptor.output());
    pass(&mut acceptor, &mut initiator, 99).expect("an answer");
    wire.extend(initiator.output());
    assert_eq!(wire.len(), HELLO + REPLY + ANSWER);
    let Keys { to_acceptor, .. } = keys(&[0xAB; 16]);
    for hidden in [&[0xAB; 8][..], &to_acceptor.as_bytes()[..8]] {
        assert!(!wire.windows(8).any(|window| window == hidden));
    }
    assert_eq!(format!("{:?}", Secret::new(b"x")), "Secret(..)");
}

#[test]
fn neither_end_believes_one_that_lacks_the_secret() {
    let (mut initiator, mut acceptor) = ends(b"one", b"another");
    pass(&mut initiator, &mut acceptor, 99).expect("anybody may ask");
    let refused = pass(&mut acceptor, &mut initiator, 99);
    assert_eq!(refused, Err(Refused::Answer));
    assert!(initiator.output().is_empty(), "no answer for a stranger");
    assert_eq!(acceptor.receive(&[0; ANSWER]), Err(Refused::Answer));
    assert_eq!(acceptor.receive(&[0; ANSWER]), Err(Refused::Answer));
    assert!(acceptor.proven().is_none() && acceptor.wanted() == 0);
}

#[test]
fn an_answer_is_good_for_one_side_and_one_connection() {
    // Sent back: the acceptor's own answer.
    let (mut initiator, mut acceptor) = ends(b"secret", b"secret");
    pass(&mut initiator, &mut acceptor, 99).expect("a challenge");
    let reply = acceptor.output().to_vec();
    let mut reflected = Handshake::accept(Secret::new(b"secret"), 3, 2, [2; 32]);
    let hello = Challenge { purpose: PURPOSE, nonce: [1; 32] };
    reflected.receive(&hello.to_bytes()).expect("a challenge");
    assert_eq!(reflected.receive(&reply[32..]), Err(Refused::Answer));

    // Said once more: that of an earlier connection.
    initiator.receive(&reply).expect("an answer");
    let answer = initiator.output().to_vec();
    let mut later = Handshake::accept(Secret::new(b"secret"), 3, 2, [3; 32]);
    later.receive(&hello.to_bytes()).expect("a challenge");
    assert_eq!(later.receive(&answer), Err(Refused::Answer));

    // Passed on to another node, service, or lane.
    for (service, own) in [(3, 1), (4, 2)] {
        let mut other = Handshake::accept(Secret::new(b"secret"), service, own, [2; 32]);
        assert_eq!(other.receive(&hello.to_bytes()), Err(Refused::Address));
    }
    let mut changed = hello;
    changed.purpose.lane += 1;
    let mut other = Handshake::accept(Secret::new(b"secret"), 3, 2, [2; 32]);
    other.receive(&changed.to_bytes()).expect("a challenge");
    assert_eq!(other.receive(&answer), Err(Refused::Answer));
}

#[test]
fn a_tag_is_of_one_message() {
    let Keys { to_acceptor, to_initiator } = keys(b"a");
    let tag = to_acceptor.tag(5, &[b"ab", b"c"]);
    assert!(to_acceptor.is_of(&tag, 5, &[b"abc"]));
    assert!(!to_acceptor.is_of(&tag, 6, &[b"abc"]));
    assert!(!to_acceptor.is_of(&tag, 5, &[b"abd"]));
    assert!(!to_initiator.is_of(&tag, 5, &[b"abc"]));
    let mut wrong = tag;
    wrong[15] ^= 1;
    assert!(!to_acceptor.is_of(&wrong, 5, &[b"abc"]));
}

proptest! {
    #[test]
    fn random_bytes_are_never_believed(
        is_acceptor: bool,
        begins_well: bool,
        pieces in vec(vec(any::<u8>(), 0..80), 0..8),
    ) {
        let (mut initiator, mut acceptor) = ends(b"s", b"s");
        if begins_well {
            pass(&mut initiator, &mut acceptor, 99).expect("a challenge");
        }
        let mut end = if is_acceptor { acceptor } else { initiator };
        let mut refused = None;
        for piece in &pieces {
            let wanted = end.wanted();
            prop_assert!(wanted <= REPLY);
            match end.receive(piece) {
                Ok(()) => prop_assert!(refused.is_none()),
                Err(reason) => refused = Some(reason),
            }
            prop_assert!(end.proven().is_none());
            let length = end.output().len();
            prop_assert!(length <= REPLY);
            end.sent(length + piece.len());
        }
    }

    #[test]
    fn a_changed_bit_is_noticed(bit in 0..(HELLO + REPLY + ANSWER) * 8) {
        let (mut initiator, mut acceptor) = ends(b"s", b"s");
        let flip = |bytes: &mut Vec<u8>, before: usize| {
            if let Some(at) = (bit / 8).checked_sub(before).filter(|&at| at < bytes.len()) {
                bytes[at] ^= 1 << (bit % 8);
            }
        };
        let mut run = || -> Result<(), Refused> {
            let mut said = initiator.output().to_vec();
            initiator.sent(said.len());
            flip(&mut said, 0);
            acceptor.receive(&said)?;
            let mut said = acceptor.output().to_vec();
            acceptor.sent(said.len());
            flip(&mut said, HELLO);
            initiator.receive(&said)?;
            let mut said = initiator.output().to_vec();
            initiator.sent(said.len());
            flip(&mut said, HELLO + REPLY);
            acceptor.receive(&said)
        };
        prop_assert!(run().is_err());
        prop_assert!(acceptor.proven().is_none());
    }

    #[test]
    fn challenges_are_read_as_written(numbers: [u32; 4], nonce: [u8; 32], wrong in 0..8_usize) {
        let [service, from, to, lane] = numbers;
        let challenge = Challenge { purpose: Purpose { service, from, to, lane }, nonce };
        let mut bytes = challenge.to_bytes();
        prop_assert_eq!(Challenge::parse(&bytes), Some(challenge));
        bytes[wrong] ^= 0x20;
        prop_assert_eq!(Challenge::parse(&bytes), None);
    }
}
