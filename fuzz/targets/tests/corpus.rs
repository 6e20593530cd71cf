//! Valid input, and inputs that were made of it by chance, always the same ones: a part of what `make fuzz` does, which
//! takes no build of its own.

use cohort_fuzz_targets::{addresses, control, elf, manager, proof, server, settings};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Inputs of each target that are made by chance.
const INPUTS: usize = 4000;

/// Longest input that is made of nothing.
const LENGTH_MAX: u64 = 200;

/// Numbers that are always the same (xorshift64*).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        // Ends of ranges, which tell more than others.
        match self.below(3) {
            0 => [0, 1, 0x7f, 0x80, 0xff, b'0', b'=', b'\n'][self.below(8) as usize],
            _ => self.below(256) as u8,
        }
    }

    /// What a valid input becomes by a few changes.
    fn changed(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() as u64) as usize;
            let end = (at + self.below(32) as usize).min(bytes.len());
            match self.below(6) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..end)),
                2 => {
                    let copy = bytes[at..end].to_vec();
                    drop(bytes.splice(at..at, copy));
                }
                3 => bytes.insert(at, self.byte()),
                _ => {
                    let byte = self.byte();
                    bytes.get_mut(at).into_iter().for_each(|place| *place = byte);
                }
            }
        }
        bytes
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds")
}

/// The valid inputs of a target; none is one that has no form.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(folder().join(name)).into_iter().flatten().flatten();
    files.map(|file| std::fs::read(file.path()).expect("a committed file")).collect()
}

fn try_all(seeds: &[Vec<u8>], run: fn(&[u8])) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    run(&[]);
    for seed in seeds {
        run(seed);
    }
    for number in 0..INPUTS {
        let input = match seeds.get(number % (seeds.len() + 1)) {
            Some(seed) => numbers.changed(seed),
            None => (0..numbers.below(LENGTH_MAX)).map(|_| numbers.byte()).collect(),
        };
        let ended = std::panic::catch_unwind(|| run(&input));
        assert!(ended.is_ok(), "this input shows a defect: {}", input.escape_ascii());
    }
}

#[test]
fn addresses_of_nodes() {
    try_all(&seeds("addresses"), addresses::run);
}

#[test]
fn frames_of_control_sockets() {
    try_all(&seeds("control"), control::run);
}

#[test]
fn elf_files() {
    let source = folder().join("elf/main.c");
    let made = |options: &[&str], name: &str| {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let compiler = Command::new("cc").args(options).arg("-o").arg(&file).arg(&source).status();
        assert!(compiler.expect("a C compiler").success());
        std::fs::read(file).expect("what was compiled")
    };
    let executable = made(&["-s", "-Wl,-z,noseparate-code"], "fuzz-executable");
    let library = made(&["-s", "-shared", "-fPIC", "-Wl,-z,noseparate-code"], "fuzz-library");
    try_all(&[executable, library], elf::run);
}

#[test]
fn answers_of_process_managers() {
    try_all(&seeds("manager"), manager::run);
}

#[test]
fn strangers_that_shall_prove_themselves() {
    try_all(&seeds("proof"), proof::run);
}

#[test]
fn requests_of_ranks() {
    try_all(&seeds("server"), server::run);
}

#[test]
fn variables_of_the_environment() {
    try_all(&seeds("settings"), settings::run);
}
