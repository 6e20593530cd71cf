extern crate std;
use super::*;
use std::string::ToString;

fn read(entries: &[&str]) -> Result<Settings, Invalid> {
    Settings::from_env(entries.iter().map(|entry| entry.as_bytes()))
}

#[test]
fn defaults_of_the_table_are_the_defaults_of_the_struct() {
    for row in TABLE {
        let mut settings = Settings::DEFAULT;
        if row.default != "RLIMIT_STACK" {
            assert_eq!((row.set)(&mut settings, row.default), Some(()), "{}", row.name);
        }
        assert_eq!(settings, Settings::DEFAULT, "{}", row.name);
    }
}

#[test]
fn other_variables_are_passed_over() {
    assert_eq!(read(&["PATH=/bin", "NOEQUALS", "COHORTX=1"]).unwrap(), Settings::DEFAULT);
}

#[test]
fn values_are_read() {
    let settings = read(&["COHORT_PROGRESS=none", "COHORT_STACKSIZE=2M"]).unwrap();
    assert_eq!(settings.progress, Progress::None);
    assert_eq!(settings.stack_size, 2 << 20);
}

#[test]
fn a_misspelt_name_gets_the_nearest_one() {
    let message = read(&["COHORT_PROGRES=steal"]).unwrap_err().to_string();
    assert!(message.contains("did you mean COHORT_PROGRESS?") && message.contains("--help=settings"), "{message}");
    // One guess, and not all names behind it.
    assert_eq!(message.matches("COHORT_").count(), 2, "{message}");
}

#[test]
fn near_misses_are_refused_and_other_names_are_somebody_elses() {
    for (name, meant) in [
        ("COHORT_WIAT", "COHORT_WAIT"),
        ("COHORT_WAI", "COHORT_WAIT"),
        ("COHORT_STAT", "COHORT_STATS"),
        ("COHORT_progress", "COHORT_PROGRESS"),
        ("COHORT_io", "COHORT_IO"),
        ("COHORT_PORGERSS", "COHORT_PROGRESS"),
        ("COHORT_STEAL_LOCALTIY", "COHORT_STEAL_LOCALITY"),
        ("COHORT_SIGNAL_PERIOD", "COHORT_SIGNAL_PERIOD_US"),
        ("COHORT_EAGER", "COHORT_EAGER_MAX"),
    ] {
        let message = read(&[&std::format!("{name}=1")]).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
        let question = std::format!("did you mean {meant}?");
        assert!(message.contains(&question), "{message}");
    }
    for name in [
        "COHORT_NAME",
        "COHORT_ID",
        "COHORT_NO",
        "COHORT_DIR",
        "COHORT_VCF",
        "COHORT_SIZE",
        "COHORT_SAMPLES",
        "COHORT_",
        "COHORT_PROGRESS_BAR",
        "COHORT_A_VERY_LONG_NAME_OF_SOMEBODY_ELSES_THAT_IS_LONGER_THAN_ANY_OF_OURS_IS",
    ] {
        assert!(read(&[&std::format!("{name}=1")]).is_ok(), "{name}");
    }
}

#[test]
fn a_bad_value_names_the_valid_ones() {
    for entry in ["COHORT_PROGRESS=stael", "COHORT_PROGRESS", "COHORT_PROGRESS="] {
        let message = read(&[entry]).unwrap_err().to_string();
        assert!(message.contains("steal, none, thread"), "{message}");
    }
    for entry in ["COHORT_EAGER_MAX=-1", "COHORT_EAGER_MAX=2G", "COHORT_STACKSIZE=1K"] {
        assert!(read(&[entry]).is_err(), "{entry}");
    }
    assert!(bytes("99999999999999999999G").is_none());
}

#[test]
fn ports_and_timeouts_have_bounds() {
    assert_eq!(network::ports("50000-50999"), Some((50000, 50999)));
    assert_eq!(network::ports("7-7"), Some((7, 7)));
    assert_eq!(network::timeout("3"), Some(3));
    let default = network::TIMEOUT_ROW.default;
    assert_eq!(network::timeout(default), Some(network::TIMEOUT_DEFAULT));
    for entry in ["COHORT_NET_PORTS=auto", "COHORT_NET_TIMEOUT=86400"] {
        assert!(read(&[entry]).is_ok(), "{entry}");
    }
    for value in ["", "0-5", "9-8", "5", "1-65536", "1-2-3", "x-y", "-"] {
        let message = read(&[&std::format!("COHORT_NET_PORTS={value}")]).unwrap_err();
        assert!(message.to_string().contains("50000-50999"), "{message}");
    }
    for value in ["0", "17", "x"] {
        let message = read(&[&std::format!("COHORT_NET_RAILS={value}")]).unwrap_err();
        assert!(message.to_string().contains("1 to 16"), "{message}");
    }
    for value in ["0", "257", "x", ""] {
        let message = read(&[&std::format!("COHORT_NET_ENDPOINTS={value}")]).unwrap_err();
        assert!(message.to_string().contains("1 to 256"), "{message}");
    }
    assert!(read(&["COHORT_NET_ENDPOINTS=auto"]).is_ok());
    assert_eq!(network::endpoints("auto"), None);
    assert_eq!(network::endpoints("7"), Some(7));
    assert_eq!(network::rails(network::RAILS_ROW.default), Some(network::RAILS_DEFAULT));
    for (value, expected) in [("1", true), ("on", true), ("0", false), ("off", false)] {
        assert_eq!(network::encrypt(value), Some(expected));
    }
    let message = read(&["COHORT_NET_ENCRYPT=yes"]).unwrap_err();
    assert!(message.to_string().contains("on, off"), "{message}");
    for value in ["0", "-1", "86401", "3s", "auto"] {
        let message = read(&[&std::format!("COHORT_NET_TIMEOUT={value}")]).unwrap_err();
        assert!(message.to_string().contains("1 to 86400"), "{message}");
    }
}

#[test]
fn messages_are_told_apart_where_members_are_compared() {
    let on = read(&["COHORT_CHECK=on", "COHORT_EAGER_MAX=1K"]).expect("valid");
    assert_eq!((on.check, on.check_members, on.eager_max), (true, false, 1024));
    let members = read(&["COHORT_CHECK=members", "COHORT_EAGER_MAX=1K"]).expect("valid");
    assert!(members.check && members.check_members);
    assert_eq!((members.eager_max, members.compared_eager_max), (0, 1024));
    assert!(!read(&["COHORT_CHECK=off"]).expect("valid").check);
    let message = read(&["COHORT_CHECK=1"]).unwrap_err();
    assert!(message.to_string().contains("on, members, off"), "{message}");
}

#[test]
fn the_tuning_page_has_every_setting() {
    let page = include_str!("../../../docs/TUNING.md");
    for row in TABLE {
        let line = std::format!("| `{}` | {} | {} |", row.name, row.values, row.default);
        assert!(page.contains(&line), "docs/TUNING.md lacks the row {line}");
    }
}

#[test]
fn policies_have_their_places() {
    for (place, &(name, progress)) in Progress::NAMES.iter().enumerate() {
        assert_eq!(usize::from(progress.index()), place);
        assert_eq!(Progress::of_index(progress.index()), progress);
        assert_eq!((Progress::of_name(name), progress.name()), (Some(progress), name));
        assert_eq!(read(&[&std::format!("COHORT_PROGRESS={name}")]).map(|all| all.progress).ok(), Some(progress));
    }
    assert_eq!(Progress::VALUES.split(", ").count(), Progress::NAMES.len());
}

/// The page's table of policies has the rows of ours, in their order.
#[test]
fn the_page_of_policies_has_every_policy() {
    let page = include_str!("../../../docs/policies.md");
    let mut rows = page.lines().filter(|line| line.starts_with("| `")).peekable();
    for line in Progress::LISTING.lines() {
        let (name, who) = line.split_once('\t').expect("a name and who acts");
        let row = std::format!("| `{name}` | {who} |");
        let found = rows.next().unwrap_or_default();
        assert!(found.starts_with(&row), "docs/policies.md has {found:?} in place of the row {row}");
    }
}
