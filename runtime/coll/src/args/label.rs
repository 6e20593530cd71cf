//! Which call a post or a message belongs to.

use super::kind::Kind;
use super::{Call, Form};
use core::fmt;

/// What a table of what all members say is about ([`crate::view`]). A member does not take the words of one that came
/// with another table, in a wrong program, for those of its own.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// A communicator or a window that is made or freed.
    Object,
    /// Arguments of collectives, which are compared.
    Arguments,
    /// Colors and keys.
    Split,
    /// What kind of part each member wants.
    SplitType,
    /// Where each member lives.
    Sites,
    /// Memory of a window.
    Window,
    /// Files as they are opened: how, and what was found.
    FileMode,
    /// The same: which file it is.
    FileOpened,
    /// Whether a member's part in a call of a file has failed.
    FileTrouble,
    /// What all members must say alike of a file.
    FileSame,
    /// Reads of all members together: where their data is.
    FileRead,
    /// Writes of all members together: where their data is.
    FileWrite,
    /// What members have found in such reads and writes.
    FileFound,
    /// The beginning of reads and writes that nobody else's come between.
    FileAlone,
    /// Reads in the order of ranks.
    FileReadOrdered,
    /// Writes in the order of ranks.
    FileWriteOrdered,
    /// Where these begin.
    FilePlace,
    /// A duplicate of a communicator.
    Duplicate,
    /// A communicator of a group.
    Create,
    /// A grid of members.
    Cart,
    /// The same without some dimensions.
    CartSub,
    /// A graph of members.
    Graph,
    /// The same of which each member knows its own edges.
    Adjacent,
    /// The same of which each member names any edges.
    Edges,
    /// One communicator of two groups.
    Merge,
    /// Processes that start.
    Spawn,
    /// Processes of other worlds that come.
    Port,
    /// A communicator that is disconnected.
    Disconnect,
    /// Memory of a window that the runtime allocates.
    WindowAllocate,
    /// The same that its members share.
    WindowShared,
    /// A window without memory.
    WindowDynamic,
}

impl Table {
    /// Of reads or of writes of all members together.
    #[must_use]
    pub const fn of_move(reads: bool) -> Self {
        if reads { Self::FileRead } else { Self::FileWrite }
    }

    /// The same in the order of ranks.
    #[must_use]
    pub const fn of_ordered(reads: bool) -> Self {
        if reads { Self::FileReadOrdered } else { Self::FileWriteOrdered }
    }

    /// What is called, by the number of the table.
    const CALLS: [&str; 31] = [
        "MPI_Finalize or a call that makes or frees an object",
        "a collective whose arguments are compared",
        "MPI_Comm_split",
        "MPI_Comm_split_type",
        "a call that makes a topology",
        "MPI_Win_create",
        "MPI_File_open",
        "MPI_File_open",
        "MPI_File_close or another call of a file that moves no data",
        "MPI_File_set_size or another call that sets something of a file",
        "a collective read of a file",
        "a collective write of a file",
        "the end of a collective read or write of a file",
        "a collective read or write of a file in atomic mode",
        "an ordered read of a file",
        "an ordered write of a file",
        "an ordered read or write of a file",
        "MPI_Comm_dup",
        "MPI_Comm_create",
        "MPI_Cart_create",
        "MPI_Cart_sub",
        "MPI_Graph_create",
        "MPI_Dist_graph_create_adjacent",
        "MPI_Dist_graph_create",
        "MPI_Intercomm_merge",
        "MPI_Comm_spawn",
        "MPI_Comm_accept or MPI_Comm_connect",
        "MPI_Comm_disconnect",
        "MPI_Win_allocate",
        "MPI_Win_allocate_shared",
        "MPI_Win_create_dynamic",
    ];
}

/// Says which call a post or a message of a member belongs to: the function, the root, and whether it is a part of a
/// call that makes or frees an object, or of `MPI_Finalize`. What bears another label than the reader's own is of a
/// member that called something else, in a wrong program; the reader does not take it for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(u64);

/// Bits beside the label, for what describes the post.
const BESIDE: u32 = 20;
const INTERNAL: u64 = 1 << (BESIDE + 7);
const ROOT: u32 = 32;

impl Label {
    /// Of members whose posts nobody reads.
    pub(crate) const NONE: Self = Self(0);
    /// Of [`Call::Allreduce`].
    pub(crate) const ALLREDUCE: Self = Self((Kind::Allreduce as u64) << BESIDE);
    /// The bits in which a label has nothing.
    pub(crate) const FREE: u64 = (1 << BESIDE) - 1;
    /// Roots, counted from 0 on, that tags tell apart.
    const ROOTS: i32 = 31;

    #[inline(always)]
    pub(crate) fn of(call: &Call<'_>, form: Form) -> Self {
        let internal = match form {
            Form::Internal => INTERNAL,
            _ => 0,
        };
        let kind = u64::from(Kind::of(call) as u8) << BESIDE;
        Self(kind | internal | (call.root() as u64) << ROOT)
    }

    /// Of a table of what all members say.
    pub(crate) const fn of_table(table: Table) -> Self {
        Self((Kind::Allgather as u64) << BESIDE | INTERNAL | (table as u64) << ROOT)
    }

    /// Of an operation within a call, which has no root.
    pub(crate) fn within(call: &Call<'_>, table: Table) -> Self {
        Self((Kind::of(call) as u64) << BESIDE | INTERNAL | (table as u64) << ROOT)
    }

    /// With a description in the free bits.
    #[inline(always)]
    pub(crate) fn with(self, description: u64) -> u64 {
        self.0 | description
    }

    /// The description that was put beside this label; something beyond [`Label::FREE`] if it was beside another one.
    #[inline(always)]
    pub(crate) fn beside(self, labelled: u64) -> u64 {
        self.0 ^ labelled
    }

    /// The label that something bears.
    pub(crate) fn borne_by(labelled: u64) -> Self {
        Self(labelled & !Self::FREE)
    }

    /// A number for messages of calls with this label, less than [`Label::NUMBERS`]. Those of few roots differ.
    pub(crate) fn number(self) -> i32 {
        let kind = (self.0 >> BESIDE & 0xf) as i32 | i32::from(self.0 & INTERNAL != 0) << 4;
        let root = (self.0 >> ROOT) as i32 % Self::ROOTS;
        root << 5 | kind
    }

    /// How many numbers there are.
    pub(crate) const NUMBERS: i32 = Self::ROOTS << 5;
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = (self.0 >> BESIDE) as usize & 0xf;
        if self.0 & INTERNAL != 0 {
            let has_root =
                matches!(Kind::ALL.get(kind), Some((Kind::Bcast | Kind::Gather | Kind::Scatter | Kind::Reduce, ..)));
            let table = if has_root { 0 } else { (self.0 >> ROOT) as usize };
            return f.write_str(Table::CALLS.get(table).unwrap_or(&Table::CALLS[0]));
        }
        let Some((kind, initial, rest)) = Kind::ALL.get(kind) else {
            return Ok(());
        };
        write!(f, "MPI_{initial}{rest}")?;
        match kind {
            Kind::Bcast | Kind::Reduce => write!(f, ", root {}", self.0 >> ROOT),
            Kind::Gather | Kind::Scatter => write!(f, "(v), root {}", self.0 >> ROOT),
            Kind::Allgather | Kind::Alltoall => f.write_str("(v)"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohort_datatype::Buffer;
    use std::collections::BTreeSet;
    use std::format;

    #[test]
    fn labels_and_their_numbers_tell_calls_apart() {
        let buffer = Buffer::EMPTY;
        let bcasts = (0..20).map(|root| Call::Bcast { buffer, root });
        let gathers = (0..11).map(|root| Call::Gather { send: None, receive: None, root, is_even: true });
        let calls = || bcasts.clone().chain(gathers.clone()).chain([Call::Barrier]);
        let labels = || {
            let forms = [Form::Blocking, Form::Internal];
            forms.map(|form| calls().map(move |call| Label::of(&call, form)))
        };
        let all: BTreeSet<u64> = labels().into_iter().flatten().map(|it| it.with(0)).collect();
        assert_eq!(all.len(), 64);
        let numbers: BTreeSet<i32> = labels().into_iter().flatten().map(Label::number).collect();
        assert_eq!(numbers.len(), 64);
        assert!(numbers.iter().all(|it| (0..Label::NUMBERS).contains(it)));
    }

    #[test]
    fn tables_about_other_things_have_other_labels() {
        let last = Table::WindowDynamic as usize;
        assert_eq!(last + 1, Table::CALLS.len());
        assert!(last < Label::ROOTS as usize, "tags tell them apart");
        let [read, write] = [true, false].map(|reads| Label::of_table(Table::of_move(reads)));
        assert!(read.beside(write.with(8)) > Label::FREE);
        assert_ne!(read.number(), write.number());
        assert_eq!(format!("{read}"), "a collective read of a file");
        assert_eq!(format!("{}", Label::of_table(Table::FilePlace)), "an ordered read or write of a file");
        let [dup, create] = [Table::Duplicate, Table::Create].map(|table| Label::within(&Call::Barrier, table));
        assert!(dup.beside(create.with(8)) > Label::FREE);
        assert_ne!(dup.number(), create.number());
        assert_eq!(format!("{dup}, {create}"), "MPI_Comm_dup, MPI_Comm_create");
    }

    #[test]
    fn what_is_beside_a_label_is_found_under_that_one_only() {
        let [barrier, bcast] = [Call::Barrier, Call::Bcast { buffer: Buffer::EMPTY, root: 7 }]
            .map(|call| Label::of(&call, Form::Blocking));
        let labelled = bcast.with(77);
        assert_eq!(bcast.beside(labelled), 77);
        assert!(barrier.beside(labelled) > Label::FREE);
        assert_eq!(format!("{}", Label::borne_by(labelled)), "MPI_Bcast, root 7");
    }
}
