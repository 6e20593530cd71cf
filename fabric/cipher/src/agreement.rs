//! What makes the keys of a connection unknown to who learns the job's secret.
//!
//! The secret comes through the process manager, which may carry it in clear text. So under `COHORT_NET_ENCRYPT=1` both
//! ends draw a number for this connection alone, after the proof, and tell each other what X25519 makes of it:
//!
//! ```text
//! initiator                         acceptor
//!     public number, 32 bytes  ─►
//!                              ◄─  public number, 32 bytes
//! ```
//!
//! Both go at once, in clear text. What the two numbers have in common is mixed into the keys of the proof
//! ([`cohort_proof::Keys::with`]), and the numbers are forgotten. Who only listens cannot compute that, whatever
//! secret is known then or later. Who changes a public number on the way and does not know the secret has other keys
//! than both ends: the first record does not open. Who knows the secret *and* changes packets can pose as either end.

use cohort_proof::{Keys, Side};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::rand::SystemRandom;

/// Bytes of a public number.
pub const PUBLIC: usize = 32;

/// One end's part of an agreement.
#[derive(Debug)]
pub struct Agreement {
    private: EphemeralPrivateKey,
    public: [u8; PUBLIC],
}

impl Agreement {
    /// Draws a number; `None` if the system has none to give.
    #[must_use]
    pub fn begin() -> Option<Self> {
        let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).ok()?;
        let public = private.compute_public_key().ok()?;
        let public = public.as_ref().try_into().ok()?;
        Some(Self { private, public })
    }

    /// What the other end is told.
    #[must_use]
    pub fn public(&self) -> &[u8; PUBLIC] {
        &self.public
    }

    /// The keys of the connection, for the end `side`, which was told the number `other` and had `keys` by the proof.
    /// `None` if it is one with which nothing is secret.
    #[must_use]
    pub fn keys(self, other: &[u8; PUBLIC], keys: &Keys, side: Side) -> Option<Keys> {
        let (initiator, acceptor) = match side {
            Side::Initiator => (&self.public, other),
            Side::Acceptor => (other, &self.public),
        };
        let peer = UnparsedPublicKey::new(&X25519, other);
        agree_ephemeral(self.private, &peer, |common| keys.with(&[common, initiator, acceptor])).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_proof::{Challenge, Purpose, Secret};

    fn proven() -> Keys {
        let challenge = Challenge { purpose: Purpose::default(), nonce: [1; 32] };
        Secret::new(b"of a test").keys(&challenge, &[2; 32])
    }

    fn bytes(keys: &Keys) -> [[u8; 32]; 2] {
        [*keys.to_acceptor.as_bytes(), *keys.to_initiator.as_bytes()]
    }

    /// The keys of both ends, where a third changes the numbers on their way.
    fn agreed(change: impl Fn([u8; PUBLIC]) -> [u8; PUBLIC]) -> [Option<Keys>; 2] {
        let begin = || Agreement::begin().expect("random numbers");
        let (one, other) = (begin(), begin());
        let (to_other, to_one) = (change(*one.public()), change(*other.public()));
        [one.keys(&to_one, &proven(), Side::Initiator), other.keys(&to_other, &proven(), Side::Acceptor)]
    }

    /// Who has the secret and all that travelled has the keys of the proof and the public numbers, and no more.
    #[test]
    fn both_ends_have_keys_that_the_secret_does_not_give() {
        let [one, other] = agreed(|public| public).map(|keys| bytes(&keys.expect("agreed")));
        assert_eq!(one, other);
        assert_ne!(one[0], one[1]);
        let known = bytes(&proven());
        assert!(one.iter().all(|key| !known.contains(key)), "of the proof");
        // Another connection of the same two with the same nonces.
        let [again, _] = agreed(|public| public).map(|keys| bytes(&keys.expect("agreed")));
        assert_ne!(one, again);
    }

    #[test]
    fn a_number_that_was_changed_gives_both_ends_other_keys() {
        let third = Agreement::begin().expect("random numbers");
        let [one, other] = agreed(|_| *third.public()).map(|keys| bytes(&keys.expect("agreed")));
        assert_ne!(one, other);
        // Numbers of small order have the same in common with every other.
        assert!(agreed(|_| [0; PUBLIC]).iter().all(Option::is_none));
    }
}
