//! What a member says that it does, in few words.

use super::amount::Amount;
use super::lanes;
use crate::args::{Blocks, Call, Form, Kind, Layout};
use cohort_datatype::op::{Op, PredefinedOp};
use core::fmt;

/// Words of [`Summary`] as they travel.
pub(super) const WORDS: usize = 20;

/// Who has no root.
const NO_ROOT: u32 = u32::MAX;
/// The operation of who has none, and of who has one of its own.
const NO_OP: u32 = 0;
const OWN_OP: u32 = u32::MAX;

/// What a member says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    member: u32,
    kind: Kind,
    /// Whether blocks are of one length, of several, of several types; or nobody asked.
    blocks: u8,
    form: u8,
    in_place: bool,
    root: u32,
    /// Handle of a predefined operation.
    op: u32,
    /// A number for the counts of a reduce-scatter.
    shares: u32,
    gives: Amount,
    takes: Amount,
}

/// Blocks whose form is not known here.
const ANY_BLOCKS: u8 = 0;

fn form_of(blocks: Option<&Blocks<'_>>) -> u8 {
    match blocks.map(Blocks::layout) {
        None => ANY_BLOCKS,
        Some(Layout::Equal(_)) => 1,
        Some(Layout::Varying { .. }) => 2,
        Some(Layout::Typed { .. }) => 3,
    }
}

/// A number that differs, most likely, where lists differ.
fn number_of(counts: &[i64]) -> u32 {
    let step = |sum: u64, &count: &i64| (sum ^ count.cast_unsigned()).wrapping_mul(0x100_0000_01b3);
    let sum = counts.iter().fold(0xcbf2_9ce4_8422_2325, step);
    (sum ^ (sum >> 32)) as u32
}

impl Summary {
    /// What member `member` says with a call.
    pub(super) fn of(call: &Call<'_>, form: Form, member: u32) -> Self {
        let (blocks, in_place) = match call {
            Call::Gather { receive, send, .. } => (form_of(receive.as_ref()), send.is_none()),
            Call::Scatter { send, receive, .. } => (form_of(send.as_ref()), receive.is_none()),
            Call::Allgather { receive, send } => (form_of(Some(receive)), send.is_none()),
            Call::Alltoall { receive, send } => (form_of(Some(receive)), send.is_none()),
            Call::Neighbours { receive, .. } => (form_of(Some(receive)), false),
            _ => (1, call.reduction().is_some_and(|it| it.input.is_none())),
        };
        Self {
            member,
            kind: Kind::of(call),
            blocks,
            form: form as u8,
            in_place,
            root: match call {
                Call::Bcast { root, .. }
                | Call::Gather { root, .. }
                | Call::Scatter { root, .. }
                | Call::Reduce { root, .. } => *root,
                _ => NO_ROOT,
            },
            op: match call.reduction().map(|it| it.op) {
                None => NO_OP,
                Some(Op::Predefined(op)) => op as u32,
                Some(Op::User(_)) => OWN_OP,
            },
            shares: match call {
                Call::ReduceScatter { counts, .. } => number_of(counts),
                _ => 0,
            },
            gives: Amount::UNKNOWN,
            takes: Amount::UNKNOWN,
        }
        .showing(call)
    }

    /// With the data that describes the call best, of the members' own.
    fn showing(self, call: &Call<'_>) -> Self {
        let buffer = match call {
            Call::Bcast { buffer, .. } => Some(*buffer),
            Call::Gather { send, .. } | Call::Allgather { send, .. } => *send,
            Call::Scatter { receive, .. } => *receive,
            _ => call.reduction().map(|it| it.result),
        };
        let gives = buffer.as_ref().map_or(Amount::UNKNOWN, Amount::of);
        Self { gives, ..self }
    }

    /// With what it gives to each other member, and takes of each, where that is the same for all.
    pub(super) fn with_lanes(self, call: &Call<'_>, me: u32) -> Self {
        let other = match call.root() as u32 {
            root if self.root != NO_ROOT && root != me => root,
            _ if me == 0 => 1,
            _ => 0,
        };
        let is_known = self.blocks <= 1 && self.kind != Kind::NeighborAllgather && self.kind != Kind::NeighborAlltoall;
        let known = |buffer: Option<_>| match buffer {
            Some(buffer) if is_known => Amount::of(&buffer),
            _ => Amount::UNKNOWN,
        };
        Self { gives: known(lanes::given(call, me, other)), takes: known(lanes::taken(call, other, me)), ..self }
    }

    /// With what it gives to another member.
    pub(super) fn giving(self, gives: Amount) -> Self {
        let takes = Amount::UNKNOWN;
        Self { gives, takes, ..self }
    }

    /// With what it takes of another member.
    pub(super) fn taking(self, takes: Amount) -> Self {
        let gives = Amount::UNKNOWN;
        Self { gives, takes, ..self }
    }

    /// Whether both call the same, but for the amount of data.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let blocks = self.blocks == other.blocks || self.blocks == ANY_BLOCKS || other.blocks == ANY_BLOCKS;
        let in_place = self.in_place == other.in_place || !self.kind.is_in_place_together();
        let one = (self.kind, self.form, self.root, self.op, self.shares);
        blocks && in_place && one == (other.kind, other.form, other.root, other.op, other.shares)
    }

    /// Whether what it gives is what the other one takes.
    pub(super) fn gives_what_takes(&self, other: &Self) -> bool {
        self.gives.matches(&other.takes)
    }

    /// The root, where there is one.
    pub(super) fn root(&self) -> Option<u32> {
        (self.root != NO_ROOT).then_some(self.root)
    }

    /// Who says it.
    pub(super) fn member(&self) -> u32 {
        self.member
    }

    /// For the way to other members.
    pub(super) fn words(&self) -> [i32; WORDS] {
        let head = [self.kind as u8, self.blocks, self.form, u8::from(self.in_place)];
        let mut words = [0; WORDS];
        words[..5].copy_from_slice(&[
            i32::from_le_bytes(head),
            self.member.cast_signed(),
            self.root.cast_signed(),
            self.op.cast_signed(),
            self.shares.cast_signed(),
        ]);
        for (amount, at) in [(&self.gives, 5), (&self.takes, 12)] {
            words[at] = amount.handle.cast_signed();
            for (number, at) in [(amount.count, at + 1), (amount.elements, at + 3), (amount.hash, at + 5)] {
                words[at] = number as i32;
                words[at + 1] = (number >> 32) as i32;
            }
        }
        words
    }

    /// What came so.
    pub(super) fn from_words(words: &[i32; WORDS]) -> Self {
        let [kind, blocks, form, in_place] = words[0].to_le_bytes();
        let number = |at: usize| u64::from(words[at].cast_unsigned()) | u64::from(words[at + 1].cast_unsigned()) << 32;
        let amount = |at: usize| Amount {
            handle: words[at].cast_unsigned(),
            count: number(at + 1),
            elements: number(at + 3),
            hash: number(at + 5),
        };
        let kind = Kind::ALL.get(usize::from(kind)).map_or(Kind::Barrier, |it| it.0);
        Self {
            member: words[1].cast_unsigned(),
            kind,
            blocks,
            form,
            in_place: in_place != 0,
            root: words[2].cast_unsigned(),
            op: words[3].cast_unsigned(),
            shares: words[4].cast_unsigned(),
            gives: amount(5),
            takes: amount(12),
        }
    }

    fn write_name(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, initial, rest) = Kind::ALL[self.kind as usize];
        let blocks = match (self.blocks, self.kind) {
            (ANY_BLOCKS, _) => "(v)",
            (2, _) => "v",
            (3, _) => "w",
            (_, Kind::ReduceScatter) => "(_block)",
            _ => "",
        };
        if self.form == Form::Internal as u8 {
            return f.write_str("a call that makes or frees an object");
        }
        f.write_str("MPI_")?;
        match self.form == Form::Nonblocking as u8 {
            true => write!(f, "I{}{rest}", initial.to_ascii_lowercase())?,
            false => write!(f, "{initial}{rest}")?,
        }
        let end = if self.form == Form::Persistent as u8 { "_init" } else { "" };
        write!(f, "{blocks}{end}")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}: ", self.member)?;
        self.write_name(f)?;
        if self.form == Form::Internal as u8 {
            return Ok(());
        }
        if let Some(root) = self.root() {
            write!(f, ", root {root}")?;
        }
        match PredefinedOp::from_handle(self.op) {
            Some(op) => write!(f, ", {}", op.name())?,
            None if self.op == OWN_OP => f.write_str(", an operation of the program")?,
            None => {}
        }
        if self.in_place {
            f.write_str(", in place")?;
        }
        if self.gives != Amount::UNKNOWN {
            write!(f, ", {}", self.gives)?;
        }
        if self.takes != Amount::UNKNOWN && self.takes != self.gives {
            write!(f, ", room for {}", self.takes)?;
        }
        Ok(())
    }
}
