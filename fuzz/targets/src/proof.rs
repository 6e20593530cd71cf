//! A stranger may say what it likes: it is refused, or nothing is proven.

use cohort_proof::{Handshake, Purpose, Secret};

const PURPOSE: Purpose = Purpose { service: 1, from: 1, to: 0, lane: 0 };

/// One input. See the module page.
///
/// # Panics
/// There is a defect.
pub fn run(bytes: &[u8]) {
    let secret = || Secret::new(b"what a fuzzer does not know");
    for mut end in [
        Handshake::accept(secret(), PURPOSE.service, PURPOSE.to, [1; 32]),
        Handshake::connect(secret(), PURPOSE, [2; 32]),
    ] {
        let mut left = bytes;
        // Pieces of 1, 2, 3, ... bytes.
        for piece in 1.. {
            let said = end.output().len();
            end.sent(said);
            let length = end.wanted().min(left.len()).min(piece);
            if length == 0 || end.receive(&left[..length]).is_err() {
                break;
            }
            left = &left[length..];
        }
        assert!(end.proven().is_none(), "proven without the secret");
    }
}
