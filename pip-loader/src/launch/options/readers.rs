//! What the rows of the table read options with.

use super::values::{self, Unit};
use super::{Print, Reader, Words};
use crate::launch::host_list;
use cohort_base::check;
use cohort_base::settings::{CHECK, INITIAL_ERRHANDLER, MEMORY_KINDS, ON_FAILURE, Settings};
use cohort_manager::wireup::Numbering;
use pip_ground::Refusal;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// How reading an option ends.
pub type Done = Result<(), Refusal>;

/// Sets what an option is about.
pub fn set<T>(place: &mut T, value: Result<T, Refusal>) -> Done {
    *place = value?;
    Ok(())
}

/// Sets what has no value without the option.
pub fn some<T>(place: &mut Option<T>, value: Result<T, Refusal>) -> Done {
    *place = Some(value?);
    Ok(())
}

/// Adds to what may be given several times.
pub fn push<T>(list: &mut Vec<T>, value: Result<T, Refusal>) -> Done {
    list.push(value?);
    Ok(())
}

/// The text is printed instead of running a job.
pub fn print(reader: &mut Reader<'_, '_>, text: String) -> Done {
    reader.print = Some(Print::Text(text));
    Ok(())
}

/// The value as text.
pub fn words(words: &mut Words<'_>, option: &str) -> Result<String, Refusal> {
    let value = words.value(option)?;
    Ok(value.to_string_lossy().into_owned())
}

/// Names between commas.
pub fn names(words: &mut Words<'_>, option: &str) -> Result<Vec<OsString>, Refusal> {
    let list = words.value(option)?;
    let parts = list.as_bytes().split(|&byte| byte == b',');
    let parts = parts.filter(|part| !part.is_empty());
    Ok(parts.map(|part| OsString::from_vec(part.to_vec())).collect())
}

/// `--hosts` and files of hosts.
pub fn add_hosts(
    reader: &mut Reader<'_, '_>,
    read: fn(&std::ffi::OsStr) -> Result<Vec<host_list::Named>, Refusal>,
) -> Done {
    let list = read(&reader.words.value(reader.option)?)?;
    match reader.options.hosts.named.is_empty() || reader.options.hosts.named == list {
        true => set(&mut reader.options.hosts.named, Ok(list)),
        false => Err(Refusal::new(format!(
            "option {}: the hosts are named a second time; one list is for all programs, whose ranks take them in turn",
            reader.option
        ))),
    }
}

/// `-configfile`.
pub fn config_file(reader: &mut Reader<'_, '_>) -> Done {
    let file = reader.words.value(reader.option)?;
    match &reader.options.config {
        None => some(&mut reader.options.config, Ok(file.into())),
        Some(first) => Err(Refusal::new(format!(
            "option {} {}: {} is read already, and only one file is: write all programs into it, one on each line",
            reader.option,
            file.display(),
            first.display()
        ))),
    }
}

/// `--map-by`.
pub fn map_by(reader: &mut Reader<'_, '_>) -> Done {
    let map = values::map(reader.option, &reader.words.value(reader.option)?)?;
    let options = &mut *reader.options;
    match (map.unit, map.ranks_per_unit) {
        (Some(Unit::Node), Some(ranks)) => options.hosts.per_host = Some(ranks),
        (Some(Unit::Node), None) => options.placement.numbering = Numbering::Cyclic,
        (Some(Unit::Of(level)), ranks) => {
            options.placement.map = Some(level);
            options.placement.per_unit = ranks;
        }
        (Some(Unit::Slot), None) | (None, _) => {}
        (Some(Unit::Slot), Some(_)) => {
            return Err(Refusal::new("--map-by ppr:N:slot: a slot is one rank; name another unit"));
        }
    }
    options.placement.cores = map.cores.or(options.placement.cores);
    options.placement.oversubscribe = map.oversubscribe.or(options.placement.oversubscribe);
    Ok(())
}

/// `-memory-alloc-kinds`.
pub fn memory_kinds(reader: &mut Reader<'_, '_>) -> Done {
    let kinds = reader.words.value(reader.option)?;
    setting(reader, MEMORY_KINDS, kinds)
}

/// `-initial-errhandler`.
pub fn initial_errhandler(reader: &mut Reader<'_, '_>) -> Done {
    let handler = reader.words.value(reader.option)?;
    setting(reader, INITIAL_ERRHANDLER, handler)
}

/// `--on-failure`, and Open MPI's `--with-ft`.
pub fn on_failure(reader: &mut Reader<'_, '_>) -> Done {
    let value = reader.words.value(reader.option)?;
    let value = match value.to_str() {
        Some("ulfm" | "mpi" | "true" | "yes" | "1") => OsString::from("continue"),
        Some("no" | "false" | "0" | "none") => OsString::from("end"),
        _ => value,
    };
    setting(reader, ON_FAILURE, value)
}

/// Sets the variable `name` for all ranks, if it takes such a value.
fn setting(reader: &mut Reader<'_, '_>, name: &str, value: OsString) -> Done {
    let entry = [OsStr::new(name), &value].join(OsStr::new("="));
    if let Err(invalid) = Settings::from_env(std::iter::once(entry.as_bytes())) {
        let (option, given) = (&reader.option, value.to_string_lossy());
        return Err(Refusal::new(format!("option {option} takes {}, not \"{given}\"", invalid.values())));
    }
    reader.options.variables.set.push((name.into(), value));
    Ok(())
}

/// `-disable-auto-cleanup`, `--enable-recovery`.
pub fn goes_on(reader: &mut Reader<'_, '_>) -> Done {
    push(&mut reader.options.variables.set, Ok((ON_FAILURE.into(), "continue".into())))
}

/// `--check`.
pub fn check(reader: &mut Reader<'_, '_>) -> Done {
    let words = reader.words.attached.take().map(|words| words.to_string_lossy().into_owned());
    let value = match words.as_deref() {
        Some("list") => return print(reader, pip_insight::check::list()),
        Some(words) => format!("all,{words}"),
        None => "all".to_owned(),
    };
    if check::asked(&value).is_none() {
        return Err(Refusal::new(format!(
            "option {}: {} is not known; it takes no-KIND, warn, json:FILE, sarif:FILE, junit:FILE and \
             suppress:FILE with commas between them, and list",
            reader.option,
            words.unwrap_or_default(),
        )));
    }
    push(&mut reader.options.variables.set, Ok((CHECK.into(), value.into())))
}

/// `--grace`.
pub fn grace(reader: &mut Reader<'_, '_>) -> Done {
    let pair = values::grace(&reader.words.value(reader.option)?);
    push(&mut reader.options.variables.set, pair)
}

/// `-x`.
pub fn exported(reader: &mut Reader<'_, '_>) -> Done {
    let word = reader.words.value(reader.option)?;
    let pair = values::split_at_equals(&word);
    let pair = pair.or_else(|| Some((word.clone(), reader.options.variables.around.get(&word)?.clone())));
    match pair {
        Some(pair) => {
            // Other nodes get the value of this one.
            let both = [pair.0.as_os_str(), pair.1.as_os_str()].join(OsStr::new("="));
            reader.words.taken = vec![reader.option.into(), both];
            reader.options.variables.set.push(pair);
        }
        None => {
            let name = word.to_string_lossy();
            reader.options.said.notes.push(format!("-x {name}: there is no such variable here"));
        }
    }
    Ok(())
}

/// `--output-filename`. What follows the last `:` are Open MPI's words if all of it are; else it is of the folder's
/// name, in which Open MPI knows no patterns.
pub fn output_folder(reader: &mut Reader<'_, '_>) -> Done {
    let value = words(reader.words, reader.option)?;
    let is_word = |word: &str| ["nocopy", "nojobid"].contains(&word.to_ascii_lowercase().as_str());
    let split = value.rsplit_once(':').filter(|(_, words)| words.split(',').all(is_word));
    let (folder, words) = split.unwrap_or((&value, ""));
    let has = |name: &str| words.split(',').any(|word| word.eq_ignore_ascii_case(name));
    let job = if has("nojobid") { "" } else { "1/" };
    let folder = folder.replace('%', "%%");
    let output = &mut reader.options.streams.output;
    output.copies = !has("nocopy");
    output.files = ["stdout", "stderr"].map(|name| Some(format!("{folder}/{job}rank.%r/{name}")));
    Ok(())
}
