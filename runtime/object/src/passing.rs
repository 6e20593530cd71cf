//! A file that is being opened or closed: while its members meet, it has no handle by which somebody who asks why a job
//! hangs would find it.

use crate::comm::Comm;
use crate::group::Group;
use alloc::string::String;
use spin::Mutex;

/// A file that members meet about.
pub struct Passing {
    /// The context of the collectives by which they meet.
    context: u32,
    /// How it is called in pictures.
    pub name: String,
    /// The members.
    pub group: Group,
}

/// The file that a rank is opening or closing, if any.
#[derive(Default)]
pub struct Place(Mutex<Option<Passing>>);

/// Until it is dropped, the rank's collectives of a communicator are about a file.
pub struct While<'a>(&'a Place);

impl Place {
    /// The collectives of `comm` are about the file of this name.
    #[must_use]
    pub fn meets_about(&self, comm: &Comm, file: &str) -> While<'_> {
        let passing = Passing { context: comm.collective_context(), name: label(file), group: comm.group().clone() };
        *self.0.lock() = Some(passing);
        While(self)
    }

    /// Shows the file that collectives of this context are about, unless that is just changing.
    pub fn show(&self, context: u32, look: &mut dyn FnMut(&Passing)) {
        if let Some(passing) = self.0.try_lock()
            && let Some(passing) = passing.as_ref().filter(|passing| passing.context == context)
        {
            look(passing);
        }
    }
}

impl Drop for While<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

/// What pictures call a file: the end of its name, without its folder.
pub(crate) fn label(file: &str) -> String {
    /// Longer ones are cut where they begin.
    const MOST: usize = 36;
    let name = file.rsplit('/').next().unwrap_or(file);
    let mut start = name.len().saturating_sub(MOST);
    while !name.is_char_boundary(start) {
        start += 1;
    }
    let dots = if start > 0 { "..." } else { "" };
    let mut label = String::from("file \"");
    for part in [dots, &name[start..], "\""] {
        label.push_str(part);
    }
    label
}

#[cfg(test)]
mod tests {
    use super::label;
    use alloc::format;

    #[test]
    fn files_are_called_by_the_end_of_their_name() {
        assert_eq!(label("/scratch/run/out.h5"), "file \"out.h5\"");
        assert_eq!(label(&"é".repeat(40)), format!("file \"...{}\"", "é".repeat(18)));
    }
}
