//! What `--hosts` and `--launcher` name.

use super::Refusal;
use std::ffi::OsStr;

/// A host of `--hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name or address.
    pub name: String,
    /// Most ranks that it takes.
    pub slots: usize,
}

/// A process manager that can start programs on other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// MPICH's and Intel's.
    Hydra,
    /// Slurm's.
    Srun,
    /// PRRTE's, Open MPI's too.
    Prterun,
}

/// Reads `a:4,b:4`; a host without a number takes one rank.
///
/// # Errors
/// The message for the user.
pub fn parse(list: &OsStr) -> Result<Vec<Host>, Refusal> {
    let refuse = |problem: String| {
        Refusal::new(format!(
            "--hosts {}: {problem}; it takes hosts and the ranks that each may have, as in a:4,b:4",
            list.to_string_lossy()
        ))
    };
    let text = list.to_str().unwrap_or_default();
    let mut hosts: Vec<Host> = Vec::new();
    for part in text.split(',') {
        // An address of IPv6 stands in brackets, so that its colons are no separators.
        let (name, slots) = match part.rsplit_once(':') {
            Some((name, slots)) if !slots.contains(']') => (name, slots),
            _ => (part, "1"),
        };
        let letters = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]".contains(letter);
        if name.is_empty() || name.starts_with('-') || !name.chars().all(letters) {
            return Err(refuse(format!("\"{name}\" is no name of a host")));
        }
        let slots: usize = slots
            .parse()
            .ok()
            .filter(|&slots| slots > 0)
            .ok_or_else(|| refuse(format!("\"{slots}\" is no number of ranks")))?;
        if hosts.iter().any(|host| host.name == name) {
            return Err(refuse(format!("{name} is named twice")));
        }
        hosts.push(Host {
            name: name.to_owned(),
            slots,
        });
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_hosts() {
        let names = parse(OsStr::new("a:4,node-2.example,[fe80::1]:2,[::1]")).expect("valid");
        let read: Vec<_> = names.iter().map(|host| (&*host.name, host.slots)).collect();
        assert_eq!(
            read,
            [
                ("a", 4),
                ("node-2.example", 1),
                ("[fe80::1]", 2),
                ("[::1]", 1)
            ]
        );
        for wrong in ["", "a,,b", "a:0", "a:x", "a,a:2", "-x", "a;b", "a b"] {
            let message = parse(OsStr::new(wrong)).unwrap_err().to_string();
            assert!(message.contains("a:4,b:4"), "{wrong}: {message}");
        }
    }
}
