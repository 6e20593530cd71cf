//! Reads the values of options.

use super::{Bind, Place, Words};
use crate::launch::topology::Level;
use cohort_base::settings;
use cohort_manager::wireup::RANKS_MAX;
use pip_ground::Refusal;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// What a page of `--help` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Options that most people need: one screen.
    Screen,
    /// All options.
    All,
    /// The settings.
    Settings,
}

impl Page {
    /// The page that `--help=PART` asks for.
    pub fn of(part: Option<&OsStr>) -> Self {
        match part {
            None => Self::Screen,
            Some(part) if part == "settings" => Self::Settings,
            Some(_) => Self::All,
        }
    }
}

impl Words<'_> {
    /// The value of the option that was read last.
    pub fn value(&mut self, option: &str) -> Result<OsString, Refusal> {
        match self.attached.take() {
            Some(value) => Ok(value),
            None => self.next().cloned().ok_or_else(|| Refusal::new(format!("option {option} needs a value"))),
        }
    }

    /// Two words, or one with `=` between them.
    pub fn pair(&mut self, option: &str) -> Result<(OsString, OsString), Refusal> {
        // mpiexec knows `-env NAME VALUE`; `-env NAME=VALUE` is what people also type.
        let name = self.value(option)?;
        if let Some((name, value)) = split_at_equals(&name) {
            return Ok((name, value));
        }
        let both = || Refusal::new(format!("option {option} needs a name and a value"));
        if name.is_empty() {
            return Err(both());
        }
        let value = self.next().cloned().ok_or_else(both)?;
        Ok((name, value))
    }
}

/// What is before and behind the first `=` that is not the first letter.
pub fn split_at_equals(word: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = word.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=').filter(|&at| at > 0)?;
    Some((OsStr::from_bytes(&bytes[..at]).to_owned(), OsStr::from_bytes(&bytes[at + 1..]).to_owned()))
}

/// The value of `-n`.
pub fn ranks(value: &OsStr) -> Result<Vec<usize>, Refusal> {
    let text = value.to_string_lossy();
    let count = |part| {
        let what = "a number of ranks, 1 or more, or one for each node (4,2)";
        match number("-n", OsStr::new(part), what)? {
            ranks if ranks <= RANKS_MAX as usize => Ok(ranks),
            ranks => Err(Refusal::new(format!("-n {ranks}: more than {RANKS_MAX} ranks cannot exist"))),
        }
    };
    let ranks = text.split(',').map(count).collect::<Result<Vec<_>, _>>()?;
    match ranks.iter().sum() {
        0_usize => Err(Refusal::new("-n 0: a program needs at least one rank")),
        _ => Ok(ranks),
    }
}

/// The value of `--timeout`.
pub fn timeout(value: &OsStr) -> Result<Duration, Refusal> {
    let seconds: f64 = number("--timeout", value, "seconds")?;
    let limit = Duration::try_from_secs_f64(seconds).ok();
    let limit = limit.filter(|limit| !limit.is_zero() && limit.as_secs() < 1 << 31);
    limit.ok_or_else(|| {
        let given = value.to_string_lossy();
        Refusal::new(format!("--timeout {given}: it takes seconds, more than 0 and less than 2^31"))
    })
}

/// The value of `--grace`, as the variable that says the same.
pub fn grace(value: &OsStr) -> Result<(OsString, OsString), Refusal> {
    match value.to_str().and_then(settings::grace) {
        Some(_) => Ok((settings::GRACE.into(), value.to_owned())),
        None => Err(Refusal::new(format!("--grace {}: it takes seconds, 0 to 86400", value.to_string_lossy()))),
    }
}

/// A number; `what` says which are valid.
pub fn number<T: std::str::FromStr>(option: &str, value: &OsStr, what: &str) -> Result<T, Refusal> {
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| Refusal::new(format!("option {option} takes {what}, not \"{}\"", value.to_string_lossy())))
}

/// A number of things, at least one.
pub fn count(option: &str, value: &OsStr, what: &str) -> Result<usize, Refusal> {
    let what = format!("{what}, 1 to {RANKS_MAX}");
    match number(option, value, &what)? {
        number @ 1.. if number <= RANKS_MAX as usize => Ok(number),
        _ => Err(Refusal::new(format!("option {option} takes {what}"))),
    }
}

/// One of the choices.
pub fn choose<T: Copy>(option: &str, value: &OsStr, choices: &[(&str, T)]) -> Result<T, Refusal> {
    let found = choices.iter().find(|(name, _)| value == OsStr::new(name));
    found.map(|&(_, choice)| choice).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
        let names = names.join(", ");
        Refusal::new(format!("option {option} takes {names}, not \"{}\"", value.to_string_lossy()))
    })
}

/// The value of `--bind-to`, without what Open MPI lets follow after a colon.
pub fn bind(option: &str, value: &OsStr) -> Result<Bind, Refusal> {
    let text = value.to_string_lossy();
    let (name, qualifiers) = text.split_once(':').unwrap_or((&text, ""));
    let mut known = qualifiers.split(',').filter(|word| !word.is_empty());
    if known.any(|word| word != "overload-allowed" && word != "if-supported") {
        return Err(Refusal::new(format!(
            "option {option} {text}: a list of CPUs of one's own is not supported; taskset and -c choose CPUs"
        )));
    }
    let levels = Level::ALL.map(|(name, level)| (name, Bind::To(level)));
    let choices: Vec<_> = [("none", Bind::None)].into_iter().chain(levels).collect();
    choose(option, OsStr::new(Level::own_name(name)), &choices)
}

/// What `--map-by` and `--rank-by` deal out by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Slots: in the order of cores.
    Slot,
    /// Nodes.
    Node,
    /// What CPUs share.
    Of(Level),
}

/// A unit by its name.
pub fn unit(option: &str, name: &str) -> Result<Unit, Refusal> {
    let levels = Level::ALL.map(|(name, level)| (name, Unit::Of(level)));
    let others = [("node", Unit::Node), ("slot", Unit::Slot)];
    let choices: Vec<_> = levels.into_iter().chain(others).collect();
    choose(option, OsStr::new(Level::own_name(name)), &choices)
}

/// The value of `--map-by`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// The unit, if one is named.
    pub unit: Option<Unit>,
    /// `ppr:N:unit`.
    pub ranks_per_unit: Option<usize>,
    /// `PE=N`.
    pub cores: Option<usize>,
    /// `OVERSUBSCRIBE` or `NOOVERSUBSCRIBE`.
    pub oversubscribe: Option<bool>,
}

/// Reads `[UNIT][:PE=N][:OVERSUBSCRIBE]` or `ppr:N:UNIT[:PE=N]`.
pub fn map(option: &str, value: &OsStr) -> Result<Map, Refusal> {
    let text = value.to_string_lossy();
    let mut map = Map::default();
    let mut words = text.split([':', ',']).peekable();
    if words.next_if_eq(&"ppr").is_some() {
        let ranks = words.next().unwrap_or_default();
        map.ranks_per_unit = Some(count(option, OsStr::new(ranks), "ppr:N:UNIT with N ranks")?);
        map.unit = Some(unit(option, words.next().unwrap_or_default())?);
    } else if let Some(name) = words.next().filter(|name| !name.is_empty()) {
        map.unit = Some(unit(option, name)?);
    }
    for word in words {
        match word.to_ascii_lowercase().as_str() {
            "oversubscribe" => map.oversubscribe = Some(true),
            "nooversubscribe" => map.oversubscribe = Some(false),
            modifier => {
                let cores = modifier.strip_prefix("pe=").ok_or_else(|| {
                    Refusal::new(format!(
                        "option {option} {text}: after the unit it takes PE=N, OVERSUBSCRIBE and NOOVERSUBSCRIBE"
                    ))
                })?;
                map.cores = Some(count(option, OsStr::new(cores), "PE=N with N cores")?);
            }
        }
    }
    Ok(map)
}

/// The lines of `-configfile`, as words: each is a section. `#` begins a comment, quotes keep blanks.
pub fn config(path: &Path) -> Result<Vec<Vec<OsString>>, Refusal> {
    let refuse = |what: String| Refusal::new(format!("-configfile {}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let mut lines = Vec::new();
    // A backslash at its end lets a line go on.
    for line in text.replace("\\\n", " ").lines() {
        let words = words(line).ok_or_else(|| refuse(format!("a quote without its end: {line}")))?;
        if !words.is_empty() {
            lines.push(words);
        }
    }
    match lines.is_empty() {
        true => Err(refuse("it names no program".into())),
        false => Ok(lines),
    }
}

/// The words of a line, if each quote has its end.
fn words(line: &str) -> Option<Vec<OsString>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (None, '#') if word.is_none() => break,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if letter == open => quote = None,
            (None, _) if letter.is_whitespace() => words.extend(word.take().map(OsString::from)),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word.map(OsString::from));
    quote.is_none().then_some(words)
}

/// Which nodes a list of `-n` is for, in words.
pub fn wrong_nodes(given: usize, place: Place) -> Refusal {
    Refusal::new(format!(
        "-n gives ranks for {given} nodes, but the job has {} (--hosts starts one on several)",
        place.count
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_words_with_quotes_and_comments() {
        let read = |line: &str| words(line).map(|words| words.join(OsStr::new("|")));
        assert_eq!(read("-n 2  ./a 'b c' # d"), Some("-n|2|./a|b c".into()));
        assert_eq!(read("a\"b c\"d ''"), Some("ab cd|".into()));
        assert_eq!(read("a#b"), Some("a#b".into()));
        assert_eq!(read("  # all"), Some("".into()));
        assert_eq!(read("'a"), None);
    }

    #[test]
    fn maps_of_open_mpi() {
        let read = |text: &str| map("--map-by", OsStr::new(text)).map_err(|error| error.to_string());
        let numa = Some(Unit::Of(Level::Numa));
        let two = Map { unit: numa, ranks_per_unit: Some(2), cores: Some(3), oversubscribe: None };
        assert_eq!(read("ppr:2:numa:PE=3"), Ok(two));
        let cores = Map { cores: Some(4), ..Map::default() };
        assert_eq!(read(":pe=4"), Ok(cores));
        assert_eq!(read("package:OVERSUBSCRIBE").map(|map| map.oversubscribe), Ok(Some(true)));
        assert_eq!(read("slot").map(|map| map.unit), Ok(Some(Unit::Slot)));
        for (wrong, says) in [("ppr:0:numa", "1 to"), ("numa:x", "PE=N"), ("ppr:2", "hwthread"), ("l2", "l3cache")] {
            let message = read(wrong).unwrap_err();
            assert!(message.contains(says), "{wrong}: {message}");
        }
    }
}
