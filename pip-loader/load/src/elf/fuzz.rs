//! A bounded fuzz of the parser, without a compiler's help: mutations of a real file, and plain noise. The parser
//! itself asserts what an accepted plan promises. `make fuzz` is the one that is guided by coverage.

use super::parse;
use proptest::prelude::*;

/// The head of this test's own executable: a valid position-independent file whose
/// dynamic section and string table lie in the first megabytes.
fn valid() -> Vec<u8> {
    std::fs::read("/proc/self/exe").expect("the test's own executable is readable")
}

fn configuration() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) }
}

proptest! {
    #![proptest_config(configuration())]

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn noise_after_a_valid_identification_never_panics(
        bytes in proptest::collection::vec(any::<u8>(), 0..1024),
    ) {
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0".to_vec();
        file.extend(bytes);
        let _ = parse(&file);
    }
}

#[test]
fn mutations_of_a_valid_file_never_panic() {
    use proptest::test_runner::{Config, TestRunner};
    let original = valid();
    let file = std::cell::RefCell::new(original.clone());
    parse(&original).expect("an unmodified executable is valid");
    let dynamic = goblin::elf::Elf::parse(&original)
        .ok()
        .and_then(|elf| elf.program_headers.iter().find(|h| h.p_type == super::PT_DYNAMIC).cloned())
        .map(|header| header.p_offset as usize)
        .expect("a test executable is dynamic");
    let places = prop_oneof![0..64_usize, 64..1024_usize, dynamic..dynamic + 512];
    let mutation = (proptest::collection::vec((places, any::<u8>()), 1..8), any::<u64>(), 0..4_u8);
    let config = Config { cases: 4000, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&mutation, |(edits, cut, how)| {
            let mut file = file.borrow_mut();
            for &(at, value) in &edits {
                file[at] = value;
            }
            let len = if how == 0 { cut as usize % file.len() } else { file.len() };
            let _ = parse(&file[..len]);
            for &(at, _) in &edits {
                file[at] = original[at];
            }
            Ok(())
        })
        .expect("no mutation panics");
}
