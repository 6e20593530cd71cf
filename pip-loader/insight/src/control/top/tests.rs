use super::*;

fn rank(rank: u64) -> RankRow {
    RankRow { rank, pid: 100 + rank, stage: Stage::Initialized, state: "R".into(), ..RankRow::default() }
}

fn node(time_us: u64, looks: u64, ranks: Vec<RankRow>) -> NodeSample {
    NodeSample { time_us, looks, ranks, ..NodeSample::default() }
}

/// Two ranks, two seconds and a hundred looks apart: one computes, the other sleeps and helps it.
fn view() -> View {
    let before = node(1_000_000, 10, vec![rank(0), rank(1)]);
    let busy = RankRow { cpu_ms: 2000, in_mpi: 10, ..rank(0) };
    let helper = RankRow { in_mpi: 90, asleep: 80, hits: 40, helped: vec![(0, 40)], memory_kib: 2048, ..rank(1) };
    View::between(&[before], &[node(3_000_000, 110, vec![busy, helper])])
}

#[test]
fn rates_are_differences_over_time() {
    let view = view();
    let [busy, helper] = &*view.rows else {
        panic!("{view:?}");
    };
    assert_eq!((busy.cpu, busy.mpi, &*busy.state), (1.0, 0.1, "computes"));
    assert_eq!((busy.messages, busy.bytes), (None, None));
    assert_eq!((helper.mpi, helper.steals, &*helper.state), (0.9, 20.0, "asleep in MPI"));
    assert!(helper.line().ends_with("2.1M  0:40"), "{}", helper.line());
    assert!(view.summary().starts_with("2 ranks, 50.0 % of"));
}

#[test]
fn calls_that_are_counted_tell_more_than_looks() {
    let after = RankRow { calls: 3, mpi_us: 500_000, messages: 2000, call: "MPI_Recv".into(), in_mpi: 1, ..rank(0) };
    let before = node(0, 0, vec![rank(0)]);
    let view = View::between(&[before], &[node(1_000_000, 4, vec![after])]);
    let row = &view.rows[0];
    assert_eq!((row.mpi, row.messages), (0.5, Some(2000.0)));
    assert_eq!(row.state, "MPI_Recv");
}

#[test]
fn rows_are_sorted_and_filtered() {
    let view = view();
    let order = |sort, filter| -> Vec<u64> {
        let rows = view.rows(sort, filter);
        rows.iter().map(|row| row.rank).collect()
    };
    assert_eq!(order(Sort::Rank, ""), [0, 1]);
    assert_eq!(order(Sort::Steals, ""), [1, 0]);
    assert_eq!(order(Sort::Cpu, ""), [0, 1]);
    assert_eq!(order(Sort::Memory, "asleep"), [1]);
    for (name, sort) in Sort::ALL {
        assert_eq!(sort.name(), name);
    }
    assert_eq!(Sort::Memory.next(), Sort::Rank);
}

#[test]
fn nothing_is_shown_of_a_node_that_has_told_once_only() {
    assert!(View::between(&[], &[node(1, 1, vec![rank(0)])]).rows.is_empty());
}

#[test]
fn columns_stand_under_their_heads() {
    let (head, view) = (head(), view());
    let line = view.rows[1].line();
    for word in ["RANK", "PID", "%MPI", "MEMORY"] {
        let end = head.find(word).expect("a column") + word.len();
        let value = &line[..end];
        assert!(!value.ends_with(' ') && line[end..].starts_with(' '), "{word}\n{head}\n{line}");
    }
    let amounts = [0.0, 7.25, 42.0, 999.0, 1234.0, 45_600.0, 123_456.0, 2.5e9];
    let texts = amounts.map(amount);
    assert_eq!(texts, ["0", "7.2", "42", "999", "1.2K", "45.6K", "123K", "2.5G"]);
}
