//! What is said of the memory of ranks, which share an address space.

mod support;

use support::{Folder, pip_exec, run_command};

/// What a line says of a rank: kilobytes of stack, and of its program and libraries.
fn sizes(error: &str, rank: u32) -> [u64; 2] {
    let begin = format!("pip-exec: rank {rank}: ");
    let line = error.lines().find_map(|line| line.strip_prefix(&begin));
    let line = line.unwrap_or_else(|| panic!("no line of rank {rank}: {error}"));
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().expect("two numbers")
}

#[test]
fn statistics_tell_the_memory_of_each_rank() {
    let folder = Folder::new("memory");
    folder.compile("stack_use.c", "stack_use", &[]);
    let words = "-n 1 ./stack_use 4096 : -n 1 ./stack_use";
    let mut command = pip_exec(words.split_whitespace());
    command.current_dir(folder.path()).env("COHORT_STATS", "counters");
    let outcome = run_command(&mut command, b"");
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let (first, second) = (sizes(&outcome.error, 0), sizes(&outcome.error, 1));
    assert!(first[0] >= 4096 && first[0] < 8192, "{outcome:?}");
    assert!(second[0] > 0 && second[0] < 4096, "{outcome:?}");
    assert!(first[1] > 0 && second[1] > 0, "{outcome:?}");
}
