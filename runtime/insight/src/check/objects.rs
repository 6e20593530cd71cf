//! Objects that are not freed.

use super::findings::Site;
use super::shapes::is_made;
use super::{Call, Shared};
use crate::calls::{Form, ParameterKind};
use cohort_abi::FIRST_DYNAMIC;
use cohort_base::check::Mistake;

/// An object that the program has made.
pub struct Made {
    kind: ParameterKind,
    by: Site,
    /// For a datatype: where it was committed.
    committed: Option<Site>,
}

/// What people call an object.
fn word(kind: ParameterKind) -> &'static str {
    match kind {
        ParameterKind::Comm => "communicator",
        ParameterKind::Group => "group",
        ParameterKind::Datatype => "datatype",
        ParameterKind::Op => "operation",
        ParameterKind::Win => "window",
        ParameterKind::Info => "info object",
        ParameterKind::Errhandler => "error handler",
        ParameterKind::File => "file",
        _ => "object",
    }
}

/// A call has made objects, or committed one.
pub fn makes(shared: &mut Shared, call: &Call<'_>) {
    let name = call.site.name;
    for (place, parameter) in call.observed.call.parameters.iter().enumerate().filter(|(_, p)| is_made(p)) {
        // SAFETY: the call has ended without an error, and leaves a handle there.
        let handle = unsafe { call.observed.words.object_at(parameter.kind, call.observed.word(place)) };
        if handle < FIRST_DYNAMIC {
            continue;
        }
        let objects = &mut shared.known(call.rank).objects;
        if name == "MPI_Type_commit" {
            if let Some(made) = objects.get_mut(&handle) {
                made.committed = Some(call.site);
            }
            continue;
        }
        objects.insert(handle, Made { kind: parameter.kind, by: call.site, committed: None });
    }
}

/// A call frees an object: its handle is still there.
pub fn frees(shared: &mut Shared, call: &Call<'_>) {
    for (place, parameter) in call.observed.call.parameters.iter().enumerate() {
        if parameter.form == Form::Address {
            // SAFETY: the program passes the address of a handle, as the standard demands.
            let handle = unsafe { call.observed.words.object_at(parameter.kind, call.observed.word(place)) };
            shared.known(call.rank).objects.remove(&handle);
        }
    }
}

/// A rank is about to end MPI.
pub fn finalizes(shared: &mut Shared, call: &Call<'_>) {
    let objects = core::mem::take(&mut shared.known(call.rank).objects);
    if !shared.kinds.has(Mistake::Leaks) {
        return;
    }
    for made in objects.values() {
        let what = word(made.kind);
        match made.committed {
            Some(site) => {
                let places = [made.by.did("made"), site.did("committed")];
                shared.findings.add(Mistake::Leaks, &places, format_args!("a {what}"));
            }
            None => {
                let article = if what.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
                shared.findings.add(Mistake::Leaks, &[made.by.did("made")], format_args!("{article} {what}"));
            }
        }
    }
}
