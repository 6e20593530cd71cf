use super::*;
use cohort_proof::{Challenge, Purpose, Secret};
use proptest::collection::vec;
use proptest::prelude::*;

/// Both ends of a connection, which change keys after so many records.
fn ends(records: u64) -> (Cipher, Cipher) {
    let challenge = Challenge { purpose: Purpose::default(), nonce: [1; 32] };
    let keys = Secret::new(b"of a test").keys(&challenge, &[2; 32]);
    let end = |side| {
        let mut cipher = Cipher::new(&keys, side);
        cipher.sealer.direction.records = records;
        cipher.opener.direction.records = records;
        cipher
    };
    (end(Side::Initiator), end(Side::Acceptor))
}

fn seal(sealer: &mut Sealer, pieces: &[Vec<u8>]) -> Vec<u8> {
    let total: usize = pieces.iter().map(Vec::len).sum();
    assert_eq!(sealer.seal(pieces.iter().map(Vec::as_slice)), total);
    let wire = sealer.unsent().to_vec();
    sealer.sent(wire.len());
    assert!(sealer.unsent().is_empty());
    wire
}

/// What comes out when the bytes come in parts of these lengths, in turn.
fn open(opener: &mut Opener, mut wire: &[u8], parts: &[usize]) -> Result<Vec<u8>, Forged> {
    let mut plain = Vec::new();
    let mut buffer = vec![0; 128 << 10];
    for &part in parts.iter().cycle() {
        let at = opener.begin(&mut buffer);
        let (now, later) = wire.split_at(part.min(wire.len()).min(buffer.len() - at));
        buffer[at..at + now.len()].copy_from_slice(now);
        let opened = opener.open(&mut buffer[..at + now.len()])?;
        plain.extend_from_slice(&buffer[..opened]);
        wire = later;
        if wire.is_empty() {
            return Ok(plain);
        }
    }
    Ok(plain)
}

#[test]
fn a_long_stream_takes_as_few_records_as_it_can() {
    let (mut one, mut other) = ends(KEY_RECORDS);
    let bytes = vec![7; 2 * RECORD_MAX + 1];
    let wire = seal(&mut one.sealer, std::slice::from_ref(&bytes));
    assert_eq!(wire.len(), 2 * record_length(RECORD_MAX) + record_length(1));
    assert_eq!(open(&mut other.opener, &wire, &[wire.len()]), Ok(bytes));
    assert_eq!(seal(&mut one.sealer, &[vec![], vec![]]), []);
    assert!(one.sealer.unsent.capacity() <= ROOM_KEPT);
}

#[test]
fn equal_bytes_never_look_equal() {
    let (mut one, mut other) = ends(2);
    let bytes = vec![vec![0; 32]];
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..9 {
        assert!(seen.insert(seal(&mut one.sealer, &bytes)));
        assert!(seen.insert(seal(&mut other.sealer, &bytes)));
    }
}

#[test]
fn what_was_left_out_repeated_moved_or_sent_back_does_not_open() {
    let forged = |wire: &[u8]| {
        let (_, mut other) = ends(KEY_RECORDS);
        open(&mut other.opener, wire, &[wire.len()])
    };
    let (mut one, mut other) = ends(KEY_RECORDS);
    let [first, second] = [b"first", b"other"].map(|word| seal(&mut one.sealer, &[word.to_vec()]));
    assert!(forged(&[&first[..], &second].concat()).is_ok());
    assert_eq!(forged(&second), Err(Forged), "left out");
    assert_eq!(forged(&[&first[..], &first].concat()), Err(Forged));
    assert_eq!(forged(&[&second[..], &first].concat()), Err(Forged));
    let own = seal(&mut other.sealer, &[b"first".to_vec()]);
    assert_eq!(forged(&own), Err(Forged), "sent back");
}

#[test]
fn a_length_is_bounded_before_any_byte_of_the_record_has_come() {
    for length in [0, RECORD_MAX as u32 + 1, u32::MAX] {
        let (_, mut other) = ends(KEY_RECORDS);
        let wire = length.to_le_bytes();
        assert_eq!(open(&mut other.opener, &wire, &[wire.len()]), Err(Forged));
    }
}

fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let lengths = prop_oneof![4 => 0..200_usize, 1 => RECORD_MAX - 50..2 * RECORD_MAX + 50];
    vec((any::<u8>(), lengths), 1..4).prop_map(|pieces| {
        let piece = |(first, length): (u8, usize)| (0..length).map(move |at| first ^ at as u8);
        pieces.into_iter().map(|one| piece(one).collect()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_cut_of_the_stream_gives_the_same_bytes(
        calls in vec(pieces(), 1..6),
        parts in vec(prop_oneof![1..30_usize, 1000..100_000_usize], 1..6),
        records in 1..5_u64,
    ) {
        let (mut one, mut other) = ends(records);
        let wire: Vec<u8> = calls.iter().flat_map(|call| seal(&mut one.sealer, call)).collect();
        let plain = calls.concat().concat();
        if !wire.is_empty() {
            prop_assert_eq!(open(&mut other.opener, &wire, &parts), Ok(plain));
            prop_assert!(other.opener.rest.is_empty());
        }
    }

    #[test]
    fn a_flipped_bit_is_refused(
        call in pieces(),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u32,
        parts in vec(1..100_000_usize, 1..3),
    ) {
        let (mut one, mut other) = ends(KEY_RECORDS);
        let mut wire = seal(&mut one.sealer, &call);
        prop_assume!(!wire.is_empty());
        let place = place.index(wire.len());
        wire[place] ^= 1 << bit;
        // A greater length waits for what does not come, so another record follows.
        wire.extend(seal(&mut one.sealer, &[vec![0; 2 * RECORD_MAX]]));
        prop_assert_eq!(open(&mut other.opener, &wire, &parts), Err(Forged));
    }
}
