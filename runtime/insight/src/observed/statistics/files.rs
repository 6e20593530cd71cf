//! Counts what is done to files.

use super::Seen;
use crate::calls::ParameterKind;
use crate::subject::files::FileTally;
use alloc::string::String;

/// Files that are counted apart; calls on others go to the last of them.
const FILES_MAX: usize = 64;

/// What a function does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileCall {
    /// Opens it.
    Open,
    /// Closes it.
    Close,
    /// Reads, or begins to.
    Read,
    /// Writes, or begins to.
    Write,
    /// Anything else.
    Other,
}

/// What a function of this name, without `MPI_`, does to a file.
pub(super) fn file_call(name: &str) -> Option<FileCall> {
    let what = name.strip_prefix("File_")?;
    let begins = |words: [&str; 2]| words.iter().any(|word| what.starts_with(word));
    Some(match what {
        "open" => FileCall::Open,
        "close" => FileCall::Close,
        "delete" | "c2f" | "f2c" => return None,
        // The begin of a split call has counted its bytes.
        what if what.ends_with("_end") => FileCall::Other,
        _ if begins(["read", "iread"]) => FileCall::Read,
        _ if begins(["write", "iwrite"]) => FileCall::Write,
        _ => FileCall::Other,
    })
}

impl Seen<'_> {
    /// The file that a call is about to close, since nobody knows it when the call has ended.
    pub(super) fn closing(&self) -> u32 {
        // SAFETY: the program passes the address of a handle, as the standard demands.
        self.file_word().map_or(0, |address| unsafe { self.call.words.file_at(address) })
    }

    /// What the call has for the file: a handle, or the address of one.
    fn file_word(&self) -> Option<u64> {
        let place = self.call.call.parameters.iter().position(|parameter| parameter.kind == ParameterKind::File)?;
        Some(self.call.word(place))
    }

    /// Counts a call that has ended.
    pub(super) fn count_file(&self, is_well: bool, time: u64) {
        let (Some(what), Some(word)) = (self.shape.file, self.file_word()) else {
            return;
        };
        let handle = match what {
            // SAFETY: the call has ended well, so it has written a handle there.
            FileCall::Open if is_well => unsafe { self.call.words.file_at(word) },
            FileCall::Open => return,
            FileCall::Close => self.statistics.awaited[self.call.thread].get() as u32,
            _ => self.call.words.file(word),
        };
        let moved = if is_well { self.moved() } else { 0 };
        self.with_file(handle, |tally| {
            tally.count.add(1);
            tally.time.add(time);
            match what {
                FileCall::Open => tally.opens.add(1),
                FileCall::Close if is_well => tally.handle = 0,
                FileCall::Read => tally.read.add(time, moved),
                FileCall::Write => tally.written.add(time, moved),
                _ => {}
            }
        });
    }

    /// Bytes that the call has moved, or, where it does not say so, was to move.
    fn moved(&self) -> u64 {
        let status = self.call.call.parameters.iter().position(|p| p.kind == ParameterKind::Status);
        // SAFETY: the call has ended well.
        let status = status.and_then(|place| unsafe { self.call.status(place, 0) });
        status.map_or_else(|| self.shape.bytes(self.call), |status| status.count_bytes.max(0).cast_unsigned())
    }

    /// Has `then` look at the tally of a file.
    fn with_file(&self, handle: u32, then: impl FnOnce(&mut FileTally)) {
        let mut files = self.statistics.files.lock();
        if let Some(file) = files.iter_mut().find(|file| file.handle == handle && handle != 0) {
            return then(file);
        }
        let Ok(file) = self.call.subject.objects.file(handle) else {
            return;
        };
        let (name, members): (String, _) = (file.name(), file.group().size());
        // One that is opened again goes on with its sums.
        let is_former = |other: &&mut FileTally| other.handle == 0 && other.members == members && other.name == name;
        if let Some(former) = files.iter_mut().find(is_former) {
            former.handle = handle;
            then(former);
        } else if files.len() < FILES_MAX {
            files.push(FileTally::new(handle, name, members));
            files.last_mut().map(then);
        } else if let Some(last) = files.last_mut() {
            (last.name, last.members) = ("others".into(), 0);
            then(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_read_or_write_or_do_something_else() {
        assert_eq!(file_call("File_iread_at_all"), Some(FileCall::Read));
        assert_eq!(file_call("File_write_ordered_begin"), Some(FileCall::Write));
        assert_eq!(file_call("File_write_ordered_end"), Some(FileCall::Other));
        assert_eq!(file_call("File_set_view"), Some(FileCall::Other));
        assert_eq!(file_call("File_delete"), None);
        assert_eq!(file_call("Send"), None);
    }
}
