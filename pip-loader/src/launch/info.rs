//! `--info`, and the parts of it that `COHORT_DEBUG` shows when a job starts.

use super::options::Options;
use super::{libraries, limits, picture, text};
use cohort_base::boot::NODE_IMAGE;
use cohort_base::settings::{DEBUG, Settings, TABLE, debug_parts};
use pip_ground::Refusal;
use pip_load::boot;
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::fmt::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// Objects of a program by which ranks are counted that fit into the address space: a Python with NumPy.
const OBJECTS: usize = 60;

/// A bit of `AT_HWCAP2`: programs may use `wrfsbase`.
const FSGSBASE: u64 = 1 << 1;

/// Everything about this installation and this machine.
///
/// # Errors
/// A setting is invalid, or ranks cannot be bound as the options say.
pub fn all(options: &Options) -> Result<String, Refusal> {
    let values = Values::of(options)?;
    let mut page = text::version();
    let mut warnings = Vec::new();
    let mut section = |title: &str, text: &str| {
        let _ = write!(page, "\n{title}\n");
        for line in text.lines() {
            let _ = writeln!(page, "  {line}");
        }
    };
    section("settings", &values.settings(true));
    section("machine and pinning", &picture::of_this_machine(options)?);
    section("libraries", &folder(&mut warnings));
    section("network", &values.network(&mut warnings));
    section("kernel", &kernel(&mut warnings));
    if warnings.is_empty() {
        warnings.push("none".to_owned());
    }
    section("warnings", &warnings.join("\n"));
    Ok(page)
}

/// What `COHORT_DEBUG` asks for; empty if it asks for nothing.
///
/// # Errors
/// As [`all`].
pub fn parts(options: &Options) -> Result<String, Refusal> {
    let values = Values::of(options)?;
    let wanted = values.value(DEBUG).unwrap_or_default();
    let mut page = String::new();
    for part in debug_parts(&wanted).into_iter().flatten().flatten() {
        match part {
            "pin" => page += &picture::of_this_machine(options)?,
            "settings" => page += &values.settings(false),
            _ => page += &values.network(&mut Vec::new()),
        }
    }
    Ok(page)
}

/// The variables that a job would see, with where each comes from.
struct Values(BTreeMap<String, (String, &'static str)>);

impl Values {
    fn of(options: &Options) -> Result<Self, Refusal> {
        let text = |name: &OsString, value: &OsString, from| {
            let [name, value] = [name, value].map(|word| word.to_string_lossy().into_owned());
            (name, (value, from))
        };
        let inherited = options.variables.around.iter().filter(|(name, _)| options.variables.inherit.takes(name));
        let inherited = inherited.map(|(name, value)| text(name, value, "environment"));
        let own = options.variables.set.iter();
        let own = own.map(|(name, value)| text(name, value, "option"));
        let values = Self(inherited.chain(own).collect());
        let entries = values.0.iter();
        let entries: Vec<String> = entries.map(|(name, (value, _))| format!("{name}={value}")).collect();
        Settings::from_env(entries.iter().map(String::as_bytes))
            .map_err(|invalid| Refusal::new(invalid.to_string()))?;
        Ok(values)
    }

    fn value(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|(value, _)| value.clone())
    }

    /// The settings, or those that are no defaults.
    fn settings(&self, all: bool) -> String {
        let mut text = String::new();
        for row in TABLE {
            let found = self.0.get(row.name);
            let (value, from) = match found {
                Some((value, from)) => (value.as_str(), *from),
                None => (row.default, "default"),
            };
            if all || found.is_some() {
                let _ = writeln!(text, "{:<28} {value:<12} {from}", row.name);
            }
        }
        if text.is_empty() {
            text.push_str("all settings are defaults\n");
        }
        text
    }

    fn network(&self, warnings: &mut Vec<String>) -> String {
        let wanted = self.value("COHORT_NET_LIBFABRIC").filter(|file| file != "auto");
        let provider = self.value("COHORT_NET_PROVIDER");
        let mut text = String::new();
        match (provider.as_deref(), libfabric(wanted.as_deref())) {
            (Some("direct"), _) => text.push_str("between nodes: TCP (COHORT_NET_PROVIDER=direct)\n"),
            (provider, Some(file)) => {
                let provider = provider.filter(|name| *name != "auto");
                let provider = provider.map_or(String::new(), |name| format!(", provider {name}"));
                let _ = writeln!(
                    text,
                    "between nodes: libfabric where it has a fabric, else TCP\nlibfabric: {file}{provider}"
                );
            }
            (_, None) => {
                text.push_str("between nodes: TCP\nlibfabric: not found\n");
                warnings.push(
                    "without libfabric, InfiniBand and Omni-Path are used through TCP only: apt install libfabric1, or \
                     set COHORT_NET_LIBFABRIC"
                        .to_owned(),
                );
            }
        }
        let interface = self.value("COHORT_NET_INTERFACE");
        let _ = writeln!(text, "interface: {}", interface.as_deref().unwrap_or("auto (COHORT_NET_INTERFACE)"));
        text.push_str("within a node: one address space, no network\n");
        text
    }
}

/// The file that is loaded as libfabric, if there is one.
fn libfabric(wanted: Option<&str>) -> Option<String> {
    let name = CString::new(wanted.unwrap_or("libfabric.so.1")).ok()?;
    // SAFETY: a string; the initialisers of libfabric only make tables, and this process ends soon, or is the root,
    // which loads it anyway.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let file = files.find(|file| file.contains("libfabric.so"));
    file.map(str::to_owned).or_else(|| wanted.map(str::to_owned))
}

/// The libraries that programs would get.
fn folder(warnings: &mut Vec<String>) -> String {
    let own = std::env::current_exe().unwrap_or_default();
    let own = own.parent().unwrap_or(Path::new("/"));
    let mut text = format!("pip-exec: {}\n", own.display());
    match boot::library_folder(own) {
        Err(refusal) => warnings.push(refusal.to_string()),
        Ok(folder) => {
            let names = libraries::MPI_LIBRARIES.into_iter().chain([NODE_IMAGE]);
            for name in names {
                let file = folder.join(name);
                if file.is_file() {
                    let _ = writeln!(text, "{name}: {}", file.display());
                } else {
                    let _ = writeln!(text, "{name}: missing");
                    warnings.push(format!("{} is missing: install it again", file.display()));
                }
            }
        }
    }
    text
}

/// What the kernel lets ranks do.
fn kernel(warnings: &mut Vec<String>) -> String {
    let system = nix::sys::utsname::uname();
    let release = system.map(|system| system.release().to_string_lossy().into_owned());
    let release = release.unwrap_or_default();
    if limits::dumps_kill_all(&release) {
        warnings.push("before Linux 5.16 ranks leave no core dumps: a newer kernel has them".to_owned());
    }
    let maps = limits::max_map_count();
    let room = maps / limits::map_entries(OBJECTS);
    if room < 128 {
        warnings.push(format!(
            "vm.max_map_count {maps} has room for some {room} ranks with many libraries: sudo sysctl \
             vm.max_map_count=262144"
        ));
    }
    let mut text = format!("Linux {release}\nvm.max_map_count: {maps}, some {room} ranks with many libraries\n");
    let features = [
        (
            "pidfd_getfd",
            pidfd_getfd(),
            "ranks of a node talk through the network's owner only: Linux 5.6, and no seccomp filter, allow it",
        ),
        ("membarrier", membarrier(), "messages take a fence each: Linux 4.14, and no seccomp filter, allow it"),
        ("fsgsbase", fsgsbase(), "a thread pointer is set by a system call: Linux 5.9 allows it to programs"),
    ];
    for (name, works, otherwise) in features {
        let _ = writeln!(text, "{name}: {}", if works { "yes" } else { "no" });
        if !works {
            warnings.push(format!("{name} does not work, so {otherwise}"));
        }
    }
    text
}

fn pidfd_getfd() -> bool {
    // SAFETY: the calls take numbers only; the results are descriptors that nobody else owns, or negative.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) as i32;
        if process < 0 {
            return false;
        }
        let process = OwnedFd::from_raw_fd(process);
        let copy = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), 2, 0) as i32;
        copy >= 0 && libc::close(copy) == 0
    }
}

fn membarrier() -> bool {
    // SAFETY: a query, which changes nothing.
    let commands = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0, 0) };
    commands >= 0 && commands & libc::c_long::from(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0
}

fn fsgsbase() -> bool {
    // SAFETY: no condition.
    let capabilities = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    capabilities & FSGSBASE != 0
}

#[cfg(test)]
mod tests {
    use super::super::options::Variables;
    use super::*;

    fn with(name: &str, value: &str) -> Options {
        let set = vec![(name.into(), value.into())];
        Options { variables: Variables { set, ..Variables::default() }, ..Options::default() }
    }

    #[test]
    fn settings_say_where_they_come_from() {
        let options = with("COHORT_PROGRESS", "none");
        let page = all(&options).expect("valid");
        let line = page.lines().find(|line| line.contains("COHORT_PROGRESS")).expect("listed");
        assert!(line.contains("none") && line.ends_with("option"), "{line}");
        for part in ["COHORT_WAIT", "default", "CPU", "libmpi.so.12", "membarrier:", "warnings"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let wrong = with("COHORT_PROGRESS", "x");
        assert!(all(&wrong).unwrap_err().to_string().contains("COHORT_PROGRESS"));
    }

    #[test]
    fn jobs_show_the_parts_that_are_asked_for() {
        let parts_of = |value: &str| parts(&with(DEBUG, value));
        assert!(parts_of("settings").expect("valid").contains("COHORT_DEBUG"));
        assert!(parts_of("net,pin").expect("valid").contains("between nodes"));
        assert!(parts_of("sttings").unwrap_err().to_string().contains("pin, settings, net"));
    }
}
