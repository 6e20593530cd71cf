//! Several processes, each a node, on this machine: over TCP without libfabric, and through its `tcp` provider.
//!
//! A test starts this program again for each node, as a role of [`roles`]; the starter passes the
//! addresses around. Nothing here depends on time but the limit after which a test has hung.

mod node;
mod roles;
mod task;
mod tasks;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A test that takes longer has hung.
const LIMIT: Duration = Duration::from_secs(240);

/// The networks that are tested.
const PROVIDERS: [&str; 2] = ["direct", "tcp"];

/// A started node.
struct Started {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Drop for Started {
    fn drop(&mut self) {
        // Ended already, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `role` on `nodes` nodes with `ranks` ranks each, and passes their addresses around.
fn start(provider: &str, role: &str, nodes: usize, ranks: usize) -> Vec<Started> {
    start_with(&[("TEST_PROVIDER", provider)], role, nodes, ranks)
}

/// As [`start`], with these variables.
fn start_with(variables: &[(&str, &str)], role: &str, nodes: usize, ranks: usize) -> Vec<Started> {
    let program = std::env::current_exe().unwrap();
    let begin = |node: usize| {
        let mut child = Command::new(&program)
            .args(["--exact", "one_node", "--ignored", "--nocapture"])
            .env("TEST_ROLE", role)
            .envs(variables.iter().copied())
            .env("TEST_PLACE", format!("{node} {nodes} {ranks}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Started { child, output }
    };
    let mut started: Vec<Started> = (0..nodes).map(begin).collect();
    let mut addresses = Vec::new();
    for node in &mut started {
        addresses.push(line_of(node, "ADDRESSES "));
    }
    for node in &mut started {
        let input = node.child.stdin.as_mut().unwrap();
        for line in &addresses {
            writeln!(input, "{line}").unwrap();
        }
    }
    started
}

/// The rest of the next line that begins with `word`.
fn line_of(node: &mut Started, word: &str) -> String {
    loop {
        let mut line = String::new();
        let length = node.output.read_line(&mut line).unwrap();
        if length == 0 {
            let mut problem = String::new();
            let errors = node.child.stderr.as_mut().unwrap();
            errors.read_to_string(&mut problem).unwrap();
            panic!("a node ended without a line of {word}: {problem}");
        }
        if let Some(at) = line.find(word) {
            return line[at + word.len()..].trim_end().to_owned();
        }
    }
}

/// Waits for a node's end, which must be a success, and returns what it wrote to stderr.
fn finish(mut node: Started) -> String {
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = node.child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "a node hangs");
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut errors = String::new();
    let stream = node.child.stderr.as_mut().unwrap();
    stream.read_to_string(&mut errors).unwrap();
    assert!(status.success(), "{status}: {errors}");
    errors
}

fn finish_all(nodes: Vec<Started>) {
    for node in nodes {
        finish(node);
    }
}

/// libfabric's TCP with so many endpoints for each node, for example one for each rank.
fn each_rank(count: &str) -> [(&str, &str); 2] {
    [("TEST_PROVIDER", "tcp"), ("TEST_ENDPOINTS", count)]
}

/// Plays a role over each network; over libfabric also where each rank has an endpoint of its own.
fn play_all(role: &str, nodes: usize, ranks: usize) {
    play(role, nodes, ranks);
    finish_all(start_with(&each_rank(&ranks.to_string()), role, nodes, ranks));
}

/// Plays a role over each network, and over encrypted connections.
fn play(role: &str, nodes: usize, ranks: usize) {
    for provider in PROVIDERS {
        finish_all(start(provider, role, nodes, ranks));
    }
    let encrypted = [("TEST_PROVIDER", "direct"), ("TEST_ENCRYPT", "1")];
    finish_all(start_with(&encrypted, role, nodes, ranks));
}

/// Not a test: one node of one.
#[test]
#[ignore = "started by the other tests"]
fn one_node() {
    cohort_interpose::keep();
    roles::play(&std::env::var("TEST_ROLE").expect("started by another test"));
}

#[test]
fn packets_of_all_lengths_arrive_whole_and_in_order() {
    play("exchange", 2, 1);
}

#[test]
fn three_nodes_of_two_ranks_all_talk_with_all() {
    play_all("everybody", 3, 2);
}

#[test]
fn nodes_have_as_many_endpoints_as_they_like() {
    finish_all(start_with(&each_rank("1,3,2"), "everybody", 3, 3));
    finish_all(start_with(&each_rank("2,1"), "mixed", 2, 3));
}

#[test]
fn a_rank_that_takes_nothing_holds_up_no_other() {
    play_all("neighbours", 2, 2);
    play("neighbours", 3, 2);
}

#[test]
fn regions_are_read_and_written() {
    play("regions", 2, 1);
}

#[test]
fn a_receiver_that_does_not_poll_makes_its_sender_wait() {
    play("busy", 2, 1);
}

#[test]
fn who_sleeps_does_not_leave_a_long_read_half_answered() {
    let direct = [("TEST_PROVIDER", "direct")];
    let encrypted = [("TEST_PROVIDER", "direct"), ("TEST_ENCRYPT", "1")];
    // With two connections each is looked at, with more those that have something to read.
    for nodes in [2, 4] {
        finish_all(start_with(&direct, "lazy", nodes, 1));
        finish_all(start_with(&encrypted, "lazy", nodes, 1));
    }
}

#[test]
fn a_sleeping_node_wakes_for_packets_and_calls() {
    play("sleep", 2, 1);
}

#[test]
fn a_thief_runs_the_network_of_a_rank_that_computes() {
    play_all("thief", 2, 2);
}

#[test]
fn owners_go_on_where_descriptors_cannot_be_taken() {
    finish_all(start_with(&each_rank("2"), "forbidden", 2, 2));
}

#[test]
fn in_a_sandbox_each_rank_has_an_endpoint() {
    finish_all(start("tcp", "sandboxed", 2, 2));
}

#[test]
fn the_root_hands_out_descriptors_where_they_cannot_be_taken() {
    finish_all(start("direct", "denied", 2, 2));
}

#[test]
fn every_task_runs_every_endpoint() {
    play_all("mixed", 2, 3);
}

#[test]
fn connections_that_cross_and_have_several_callers() {
    play_all("crossing", 1, 6);
}

#[test]
fn what_an_ended_thief_has_made_waits_for_the_owner() {
    play_all("orphan", 1, 3);
}

#[test]
fn what_a_thief_withholds_the_owner_sends() {
    finish_all(start("tcp", "deferred", 2, 2));
    finish_all(start_with(&each_rank("2"), "deferred", 2, 2));
}

#[test]
fn what_a_thief_withholds_the_connector_sends() {
    finish_all(start("direct", "withheld", 2, 2));
}

#[test]
fn signal_handlers_never_see_a_seat() {
    play("storm", 2, 1);
}

#[test]
fn a_killed_node_is_reported_by_the_others() {
    for provider in PROVIDERS {
        let mut nodes = start(provider, "killed", 3, 1);
        for node in &mut nodes {
            line_of(node, "TALKED");
        }
        let mut victim = nodes.remove(1);
        victim.child.kill().unwrap();
        finish_all(nodes);
    }
}

#[test]
fn a_stranger_is_refused_and_reported_and_the_job_goes_on() {
    for provider in PROVIDERS {
        let nodes = start(provider, "stranger", 3, 1);
        let errors: Vec<String> = nodes.into_iter().map(finish).collect();
        assert!(errors[0].contains("not of this job"), "{errors:?}");
    }
}

/// A folder with a libfabric whose only provider does not work.
fn broken_libfabric() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("broken-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(folder.join("libfabric.so.1"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/processes/broken.c"))
        .status();
    assert!(built.unwrap().success());
    folder
}

#[test]
fn a_fabric_that_does_not_work_is_reported_once_and_passed_over() {
    let folder = broken_libfabric();
    let library = folder.join("libfabric.so.1");
    let named = ("COHORT_NET_LIBFABRIC", library.to_str().unwrap()); // no card is needed then
    for (how, reason) in [("unfit", "no reliable messages"), ("refuses", "Input/output error")] {
        let variables = [("TEST_PROVIDER", "auto"), named, ("BROKEN", how)];
        let nodes = start_with(&variables, "everybody", 3, 2);
        let errors: Vec<String> = nodes.into_iter().map(finish).collect();
        let facts = ["verbs", "mlx5_7", reason, "3 of 3 nodes", "COHORT_NET_PROVIDER=direct"];
        assert!(facts.iter().all(|fact| errors[0].contains(fact)), "{errors:?}");
        assert!(!errors[1..].concat().contains("verbs"), "{errors:?}");
    }
    let silent = [("TEST_PROVIDER", "direct"), named, ("BROKEN", "refuses")];
    for node in start_with(&silent, "exchange", 2, 1) {
        assert!(!finish(node).contains("verbs"));
    }
    std::fs::remove_dir_all(folder).unwrap();
}
