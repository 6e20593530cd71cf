//! What command lines mean.

use super::values::Page;
use super::*;
use crate::launch::topology::Level;
use cohort_manager::wireup::Numbering;
use std::time::Duration;

fn parse_words<'a>(words: impl Iterator<Item = &'a str>) -> Result<Request, Refusal> {
    parse(words.map(OsString::from).collect(), Environment::new())
}

fn run(line: &str) -> Options {
    match parse_words(line.split_whitespace()) {
        Ok(Request::Run(options)) => options,
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> String {
    match parse_words(line.split_whitespace()) {
        Err(refusal) => refusal.to_string(),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_program_keeps_its_own_options() {
    let options = run("-n 3 ./app -n 5 --help");
    assert_eq!(options.sections.len(), 1);
    assert_eq!(options.sections[0].ranks, [3]);
    assert_eq!(options.sections[0].arguments, ["-n", "5", "--help"]);
}

#[test]
fn every_node_may_have_its_own_number_of_ranks() {
    let on = |line: &str, index, count| run(line).sections[0].ranks_on(Place { index, count });
    assert_eq!(on("-n 4,2 p", 1, 2).unwrap(), 2);
    assert_eq!(on("-n 3 p", 6, 7).unwrap(), 3);
    assert_eq!(on("p", 0, 1).unwrap(), 1);
    let message = on("-n 4,2 p", 0, 1).unwrap_err().to_string();
    assert!(message.contains("2 nodes, but the job has 1"), "{message}");
    assert_eq!(run("--map-by node p").placement.numbering, Numbering::Cyclic);
}

#[test]
fn sections_have_their_own_environment_and_share_the_global_one() {
    let options = run("-genv A 1 -env B 2 -np 1 p : -wdir /tmp --n=2 -env C=3 -- -q");
    assert_eq!(options.variables.set, [("A".into(), "1".into())]);
    assert_eq!(options.sections[0].environment, [("B".into(), "2".into())]);
    assert_eq!(options.sections[1].environment, [("C".into(), "3".into())]);
    assert_eq!(options.sections[1].ranks, [2]);
    assert_eq!(options.sections[1].program, "-q");
    assert_eq!(options.sections[1].directory.as_deref(), Some("/tmp".as_ref()));
}

#[test]
fn long_options_take_one_dash_or_two() {
    for line in ["-bind-to core -map-by numa -timeout 1.5 -label p", "--bind-to=core --map-by numa --timeout=1.5 -l p"]
    {
        let options = run(line);
        assert_eq!(options.placement.bind, Some(Bind::To(Level::Core)));
        assert_eq!(options.placement.map, Some(Level::Numa));
        assert_eq!(options.start.timeout, Some(Duration::from_millis(1500)));
        assert!(options.streams.output.label);
    }
}

#[test]
fn variables_are_read_where_the_command_line_is() {
    let around = [("A", "1"), ("B", "2"), ("MPIEXEC_TIMEOUT", "3")].map(|(name, value)| (name.into(), value.into()));
    let words = ["-x", "A", "-genv", "B", "4", "p"].map(OsString::from);
    let Ok(Request::Run(options)) = parse(words.into(), around.into()) else {
        panic!("it is a job");
    };
    let variables = &options.variables;
    assert_eq!(variables.set, [("A".into(), "1".into()), ("B".into(), "4".into())]);
    let (all, found) = (variables.of_all("B"), variables.found("B"));
    assert_eq!((all, found, variables.of_all("C")), (Some("4".as_ref()), Some("2".as_ref()), None));
    assert_eq!(options.start.time_limit(variables).expect("valid"), Some(Duration::from_secs(3)));
    let options = run("--timeout 2 p");
    assert_eq!(options.start.time_limit(variables).expect("valid"), Some(Duration::from_secs(2)));
}

#[test]
fn refusals_name_what_is_valid() {
    assert!(refusal("-n 0 p").contains("at least one rank"));
    assert!(refusal("-n x p").contains("a number of ranks"));
    assert!(refusal("-n").contains("needs a value"));
    assert!(refusal("--tiemout 3 p").contains("did you mean --timeout?"));
    assert!(refusal("-genvs A 1 p").contains("did you mean -genv?"));
    assert!(refusal("--progress=none p").contains("set COHORT_PROGRESS in the environment"));
    assert!(refusal("-eager-max 1K p").contains("-genv COHORT_EAGER_MAX VALUE"));
    let levels = "none, hwthread, core, l3cache, numa, socket, board, not \"l2\"";
    assert!(refusal("--bind-to l2 p").contains(levels));
    assert!(refusal("--map-by Core p").contains("core, l3cache, numa, socket, board, node"));
    assert!(refusal("--timeout 0 p").contains("more than 0"));
    assert!(refusal("--label=yes p").contains("takes no value"));
    assert!(refusal("").contains("no program"));
    assert!(refusal("p :").contains("without a program"));
    assert!(refusal("--dry-run p").contains("--hosts"));
    assert!(refusal("--launcher ssh --hosts a p").contains("hydra, srun, prterun"));
    assert!(refusal("-n 2,x p").contains("4,2"));
    assert!(refusal("--ps x").contains("what is x for? One job is shown by --inspect PID"));
    assert!(refusal("--inspect 7 -n 2 p").contains("what is p for?"));
    assert!(refusal("--top=7 p").contains("what is p for?"));
    assert!(refusal("--on-failure foo p").contains("option --on-failure takes end, continue, not \"foo\""));
    assert!(refusal("-initial-errhandler foo p").contains("-initial-errhandler takes mpi_errors_are_fatal"));
}

#[test]
fn the_machine_is_shown_with_and_without_programs() {
    let show = |line: &str| match parse_words(line.split_whitespace()) {
        Ok(Request::Show(options)) => options,
        other => panic!("{line}: {other:?}"),
    };
    assert!(show("--topology").sections[0].ranks.is_empty());
    assert_eq!(show("--topology -n 3").sections[0].ranks, [3]);
    let options = show("-n 1 a : --topology -n 2 --bind-to l3cache b");
    assert_eq!(options.sections.len(), 2);
    assert_eq!(options.placement.bind, Some(Bind::To(Level::L3Cache)));
    assert!(refusal("--topology --hosts a p").contains("without --hosts"));
}

#[test]
fn help_fits_on_a_screen() {
    let (short, long) = (help::page(Page::Screen), help::page(Page::All));
    assert!(short.lines().count() <= 50, "{short}");
    assert!(long.lines().all(|line| line.len() <= 100), "{long}");
    for row in table::rows() {
        for name in row.names.split(' ') {
            assert!(long.contains(name), "{name}");
        }
    }
    let print = |words: &[&str]| match parse_words(words.iter().copied()) {
        Ok(Request::Print(text)) => text,
        other => panic!("{words:?}: {other:?}"),
    };
    assert_eq!(print(&["--help"]), short);
    assert_eq!(print(&["--help=all"]), long);
    assert_eq!(print(&["--help=settings"]), help::page(Page::Settings));
    assert_eq!(print(&["-n", "2", "--version"]), crate::launch::text::version());
    assert_eq!(print(&["--policies"]), cohort_base::settings::Progress::LISTING);
}

#[test]
fn the_manual_has_every_option_and_setting() {
    let page = man::page();
    let bare = page.replace("\\fB", "").replace("\\fR", "").replace('\\', "");
    for row in table::rows() {
        let names = row.names.split(' ').collect::<Vec<_>>().join(", ");
        assert!(bare.contains(&format!(".TP\n{names}")), "{names}");
    }
    for row in cohort_base::settings::TABLE {
        assert!(bare.contains(&format!(".BR {} ", row.name)), "{}", row.name);
    }
}

#[test]
fn shells_complete_every_option() {
    let printed = |shell: &str| match parse_words(["--completion", shell].into_iter()) {
        Ok(Request::Print(text)) => text,
        other => panic!("{shell}: {other:?}"),
    };
    let (bash, zsh, fish) = (printed("bash"), printed("zsh"), printed("fish"));
    for name in table::rows().flat_map(|row| row.names.split(' ')) {
        assert!(bash.contains(&format!("{name} ")) || bash.contains(&format!("{name}'")), "{name}");
        assert!(zsh.contains(&format!("'*{name}[")), "{name}");
        let plain = name.trim_start_matches('-');
        let found = ["-s", "-o", "-l"].map(|kind| fish.contains(&format!("{kind} {plain} ")));
        assert!(found.contains(&true), "{name}");
    }
    assert!(fish.contains("-l bind-to -x -a 'none hwthread core l3cache numa socket board'"));
    assert!(refusal("--completion tcsh").contains("bash, zsh, fish"));
}

#[test]
fn names_mean_one_option() {
    let mut names: Vec<&str> = table::rows().flat_map(table::Row::plain_names).collect();
    names.extend(foreign::names());
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn each_launcher_names_options_its_way() {
    for line in ["-n2 p", "-np2 p", "-ppn 2 p", "-N 2 p", "-H localhost:2 p", "-host localhost -ppn 2 p"] {
        assert_eq!(run(line).sections[0].ranks, [2], "{line}");
        assert_eq!(run(line).hosts.chosen, None, "{line}");
    }
    for line in ["-prepend-rank p", "--label p", "-l p"] {
        assert!(run(line).streams.output.label, "{line}");
    }
    assert_eq!(run("-genvlist A,B p").variables.inherit, Inherit::Only(vec!["A".into(), "B".into()]));
    assert_eq!(run("-envnone p").sections[0].inherit, Some(Inherit::Only(Vec::new())));
    assert_eq!(run("-x A=1 p").variables.set, [("A".into(), "1".into())]);
    assert_eq!(run("-x NO_SUCH_VARIABLE p").said.notes.len(), 1);
    assert_eq!(run("-s all p").streams.input, Input::All);
    assert_eq!(run("--stdin 3 p").streams.input, Input::Rank(3));
    assert_eq!(run("--map-by ppr:2:socket:PE=4 p").placement.cores, Some(4));
    assert_eq!(run("-rr p").placement.numbering, Numbering::Cyclic);
    assert_eq!(run("--bind-to package p").placement.bind, Some(Bind::To(Level::Socket)));
    let hosts = run("-hosts a,b -n 4 -l p");
    assert_eq!(hosts.hosts.chosen.map(|hosts| hosts[1].slots), Some(2));
    assert_eq!(hosts.hosts.typed, ["-l"]);
    assert!(refusal("-H localhost:2 -n 4 p").contains("--oversubscribe"));
    assert_eq!(run("-H localhost:2 --oversubscribe -n 4 p").sections[0].ranks, [4]);
}

#[test]
fn options_about_the_inside_of_others_are_dropped_or_refused() {
    let options = run("--mca pml ob1 -iface eth0 -bootstrap ssh -n 2 p");
    assert_eq!(options.said.ignored, ["--mca", "-iface", "-bootstrap"]);
    assert_eq!(options.sections[0].ranks, [2]);
    assert!(refusal("--mca hwloc_base_binding_policy core p").contains("use --bind-to"));
    assert!(refusal("-gdb p").contains("pip-exec -n 2 gdb"));
    assert!(refusal("--rankfile f p").contains("--map-by"));
    assert!(refusal("--hostfil f p").contains("did you mean --hostfile?"));
}
