//! Type signatures: which basic elements a datatype holds, in order, in compact form.

use super::Basic;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The sequence of basic elements of a datatype, as nested repetitions.
#[derive(Clone, Debug)]
pub struct Signature {
    bytes: u64,
    elements: u64,
    kind: SignatureKind,
}

#[derive(Clone, Debug)]
enum SignatureKind {
    Run(Basic, u64),
    Repeat(Arc<Signature>),
    Sequence(Arc<[Signature]>),
}

impl Signature {
    pub(super) const EMPTY: Self = Self { bytes: 0, elements: 0, kind: SignatureKind::Run(Basic::Byte, 0) };

    pub(super) const fn basic(basic: Basic, count: u64) -> Self {
        let per_basic = if basic.pair().is_some() { 2 } else { 1 };
        Self { bytes: basic.size() as u64 * count, elements: per_basic * count, kind: SignatureKind::Run(basic, count) }
    }

    /// `count` copies one after the other. The caller has checked that the bytes fit in 63 bits.
    pub(super) fn repeat(&self, count: u64) -> Self {
        if count == 0 || self.bytes == 0 {
            return Self::EMPTY;
        }
        if count == 1 {
            return self.clone();
        }
        match &self.kind {
            SignatureKind::Run(basic, inner) => Self::basic(*basic, inner * count),
            SignatureKind::Repeat(unit) => Self::repeat_of(unit.clone(), self.bytes * count),
            SignatureKind::Sequence(_) => Self::repeat_of(Arc::new(self.clone()), self.bytes * count),
        }
    }

    fn repeat_of(unit: Arc<Self>, bytes: u64) -> Self {
        Self { bytes, elements: bytes / unit.bytes * unit.elements, kind: SignatureKind::Repeat(unit) }
    }

    /// The concatenation of `parts`.
    pub(super) fn sequence(parts: impl Iterator<Item = Self>) -> Self {
        let mut list: Vec<Self> = Vec::new();
        for part in parts.filter(|part| part.bytes > 0) {
            if let (Some(last), SignatureKind::Run(basic, count)) = (list.last_mut(), &part.kind)
                && let SignatureKind::Run(last_basic, last_count) = last.kind
                && last_basic == *basic
            {
                *last = Self::basic(*basic, last_count + count);
                continue;
            }
            list.push(part);
        }
        match list.len() {
            0 => Self::EMPTY,
            1 => list.swap_remove(0),
            _ => Self {
                bytes: list.iter().map(|part| part.bytes).sum(),
                elements: list.iter().map(|part| part.elements).sum(),
                kind: SignatureKind::Sequence(list.into()),
            },
        }
    }

    /// Bytes of data.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Basic elements; a pair type counts two.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// The one class of all elements, if there is one; a [plain](Basic::plain) one.
    #[inline]
    #[must_use]
    pub fn uniform(&self) -> Option<Basic> {
        match &self.kind {
            SignatureKind::Run(basic, count) => (*count != 0).then_some(basic.plain()),
            kind => Self::uniform_of(kind),
        }
    }

    fn uniform_of(kind: &SignatureKind) -> Option<Basic> {
        match kind {
            SignatureKind::Run(basic, count) => (*count != 0).then_some(basic.plain()),
            SignatureKind::Repeat(unit) => unit.uniform(),
            SignatureKind::Sequence(parts) => {
                let first = parts.first()?.uniform()?;
                parts.iter().all(|part| part.uniform() == Some(first)).then_some(first)
            }
        }
    }

    /// What the sequence is, whatever its nesting: equal for equal sequences.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match &self.kind {
            SignatureKind::Run(basic, count) => match basic.pair() {
                Some((first, second)) => Digest::of(first).and(Digest::of(second)),
                None => Digest::of(basic.plain()),
            }
            .repeat(*count),
            SignatureKind::Repeat(unit) => unit.digest().repeat(self.bytes / unit.bytes),
            SignatureKind::Sequence(parts) => parts.iter().map(Self::digest).fold(Digest::EMPTY, Digest::and),
        }
    }

    /// [`Signature::digest`] of the first `elements` elements; all, where there are no more.
    #[must_use]
    pub fn digest_of_first(&self, elements: u64) -> Digest {
        if elements >= self.elements {
            return self.digest();
        }
        match &self.kind {
            SignatureKind::Run(basic, _) => match basic.pair() {
                Some((first, second)) => {
                    let pairs = Digest::of(first).and(Digest::of(second));
                    (pairs.repeat(elements / 2)).and(Digest::of(first).repeat(elements % 2))
                }
                None => Digest::of(basic.plain()).repeat(elements),
            },
            SignatureKind::Repeat(unit) => {
                let (whole, rest) = (elements / unit.elements, elements % unit.elements);
                (unit.digest().repeat(whole)).and(unit.digest_of_first(rest))
            }
            SignatureKind::Sequence(parts) => {
                let (mut digest, mut rest) = (Digest::EMPTY, elements);
                for part in parts.iter() {
                    digest = digest.and(part.digest_of_first(rest));
                    rest = rest.saturating_sub(part.elements);
                    if rest == 0 {
                        break;
                    }
                }
                digest
            }
        }
    }

    /// Visits the runs of equal basics in order: `visit(basic, count)`.
    pub fn for_each_run(&self, visit: &mut impl FnMut(Basic, u64)) {
        match &self.kind {
            SignatureKind::Run(basic, count) => {
                if *count > 0 {
                    visit(*basic, *count);
                }
            }
            SignatureKind::Repeat(unit) => {
                for _ in 0..self.bytes / unit.bytes {
                    unit.for_each_run(visit);
                }
            }
            SignatureKind::Sequence(parts) => parts.iter().for_each(|part| part.for_each_run(visit)),
        }
    }

    /// Whole basic elements in the first `bytes` bytes of one instance (`bytes` at most
    /// [`Signature::bytes`]), or `None` when they end inside an element.
    pub(super) fn elements_in(&self, bytes: u64) -> Option<u64> {
        match &self.kind {
            SignatureKind::Run(basic, _) => run_elements(*basic, bytes),
            SignatureKind::Repeat(unit) => {
                Some(bytes / unit.bytes * unit.elements + unit.elements_in(bytes % unit.bytes)?)
            }
            SignatureKind::Sequence(parts) => {
                let (mut rest, mut elements) = (bytes, 0);
                for part in parts.iter() {
                    if rest < part.bytes {
                        return Some(elements + part.elements_in(rest)?);
                    }
                    rest -= part.bytes;
                    elements += part.elements;
                }
                Some(elements)
            }
        }
    }
}

/// A sequence of basic elements as two numbers: how many they are, and a polynomial hash of them, so that the digest of
/// two sequences one after the other is made of theirs. Pairs count as their two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// How many elements.
    pub elements: u64,
    /// The hash: the elements are the digits of a number of base [`Digest::BASE`].
    pub hash: u64,
    /// The base to the power of `elements`.
    factor: u64,
}

impl Digest {
    /// That of no elements.
    pub const EMPTY: Self = Self { elements: 0, hash: 0, factor: 1 };
    /// A Mersenne prime: hashes are remainders.
    const PRIME: u64 = (1 << 61) - 1;
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15 % Self::PRIME;

    const fn of(basic: Basic) -> Self {
        Self { elements: 1, hash: basic as u64 + 1, factor: Self::BASE }
    }

    fn product(left: u64, right: u64) -> u64 {
        (u128::from(left) * u128::from(right) % u128::from(Self::PRIME)) as u64
    }

    /// That of both sequences, one after the other.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        Self {
            elements: self.elements.wrapping_add(next.elements),
            hash: (Self::product(self.hash, next.factor) + next.hash) % Self::PRIME,
            factor: Self::product(self.factor, next.factor),
        }
    }

    /// That of `count` such sequences.
    #[must_use]
    pub fn repeat(self, count: u64) -> Self {
        let (mut all, mut power, mut rest) = (Self::EMPTY, self, count);
        while rest > 0 {
            if rest & 1 == 1 {
                all = all.and(power);
            }
            power = power.and(power);
            rest >>= 1;
        }
        all
    }
}

fn run_elements(basic: Basic, bytes: u64) -> Option<u64> {
    let size = basic.size() as u64;
    let (whole, rest) = (bytes / size, bytes % size);
    match basic.pair() {
        None => (rest == 0).then_some(whole),
        Some((first, _)) => match rest {
            0 => Some(whole * 2),
            rest if rest == first.size() as u64 => Some(whole * 2 + 1),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_tell_sequences_apart_and_not_their_nesting() {
        let (int, double) = (Signature::basic(Basic::I32, 1), Signature::basic(Basic::F64, 1));
        let both = Signature::sequence([int.clone(), double.clone()].into_iter());
        let turned = Signature::sequence([double.clone(), int.clone()].into_iter());
        let flat = [&int, &double, &int, &double, &int, &double].map(Signature::clone);
        let flat = Signature::sequence(flat.into_iter());
        assert_eq!(flat.digest(), both.repeat(3).digest());
        assert_eq!(flat.digest(), both.digest().repeat(3));
        assert_eq!(both.digest().and(both.repeat(2).digest()), flat.digest());
        assert_ne!(both.digest(), turned.digest());
        assert_ne!(both.digest(), both.repeat(2).digest());
        assert_eq!(int.repeat(2).digest(), Signature::basic(Basic::TwoInt, 1).digest());
        assert_ne!(int.digest(), Signature::basic(Basic::U32, 1).digest());
        assert_eq!(int.digest().repeat(0), Digest::EMPTY);
        let odd = Signature::sequence([both.repeat(2), int.clone()].into_iter());
        assert_eq!(flat.digest_of_first(5), odd.digest());
        assert_eq!(both.repeat(7).digest_of_first(5), odd.digest());
        assert_eq!(both.digest_of_first(9), both.digest());
        let pairs = Signature::basic(Basic::FloatInt, 3).digest_of_first(3);
        let floats = Signature::basic(Basic::F32, 1).digest();
        assert_eq!(pairs, floats.and(int.digest()).and(floats));
        assert_eq!(int.repeat(1 << 40).digest().elements, 1 << 40);
    }
}
