//! Data representations (MPI-5.0 section 14.5), and those of the program (section 14.5.3).

use super::Way;
use crate::failure::{Error, Outcome, has_memory};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use cohort_abi::neutral;
use cohort_engine::Owner;
use cohort_engine::datatype::TypeRef;
use cohort_io::datarep::{DatarepError, Items, Lengths};
use spin::Mutex;

/// How data lies in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datarep {
    /// As in memory.
    Native,
    /// As this runtime likes it on any of its machines: as in memory.
    Internal,
    /// As on any machine (MPI-5.0 section 14.5.2).
    External32,
    /// As functions of the program make it.
    Program,
}

impl Datarep {
    /// The representation of this name.
    pub(super) fn of_name(name: &[u8]) -> Option<Self> {
        match name {
            b"native" => Some(Self::Native),
            b"internal" => Some(Self::Internal),
            b"external32" => Some(Self::External32),
            _ => None,
        }
    }
}

/// The functions of a representation, whatever the program's ABI. They give the program's own codes.
pub trait Conversions: Send + Sync {
    /// Bytes of an item of a predefined type in the file.
    ///
    /// # Errors
    /// The function's code.
    fn extent(&self, owner: Owner<'_>, datatype: &TypeRef) -> Result<i64, i32>;

    /// Whether there is a function for this way; data is as in memory if not.
    fn converts(&self, way: Way) -> bool;

    /// The most items that a function can be told of.
    fn most(&self) -> u64;

    /// Converts `count` items between `file` and the items of `user` from `position` on.
    ///
    /// # Safety
    /// Both have these items: `user` in instances of `datatype`, `file` one behind the other.
    ///
    /// # Errors
    /// The function's code; `MPI_ERR_NO_MEM` when no handle can be made.
    unsafe fn convert(
        &self,
        owner: Owner<'_>,
        way: Way,
        user: (*mut u8, &TypeRef),
        count: u64,
        file: *mut u8,
        position: u64,
    ) -> Result<(), i32>;
}

/// A representation of the program.
pub struct Representation {
    name: String,
    pub(super) functions: Box<dyn Conversions>,
    /// Bytes of items by the handle of their type: its function is asked once for each.
    known: Mutex<Vec<(u32, i64)>>,
}

impl core::fmt::Debug for Representation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Representation").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Representation {
    /// One that is not registered yet.
    fn new(name: &str, functions: Box<dyn Conversions>) -> Self {
        Self { name: name.into(), functions, known: Mutex::default() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A number of the name, by which members tell that theirs are the same.
    pub(super) fn number(&self) -> u64 {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        self.name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step) << 8
    }

    /// How long items are.
    pub(super) fn lengths<'a>(&'a self, owner: Owner<'a>) -> OwnLengths<'a> {
        OwnLengths { representation: self, owner }
    }
}

/// The representations that a program has registered. They last for ever.
#[derive(Debug, Default)]
pub struct Representations(Mutex<Vec<Arc<Representation>>>);

impl Representations {
    /// `MPI_Register_datarep`.
    ///
    /// # Errors
    /// `MPI_ERR_DUP_DATAREP`; `MPI_ERR_ARG` for a name that is empty or has `most` bytes or more.
    pub fn add(&self, name: &[u8], most: usize, functions: Box<dyn Conversions>) -> Outcome<()> {
        let text = match core::str::from_utf8(name) {
            Ok(text) if !text.is_empty() && text.len() < most => text,
            Ok("") => return Err(Error::new(neutral::ERR_ARG, format_args!("datarep is an empty name"))),
            Ok(_) => return Err(Error::new(neutral::ERR_ARG, format_args!("datarep has {most} bytes or more"))),
            Err(_) => return Err(Error::new(neutral::ERR_ARG, format_args!("datarep is no UTF-8"))),
        };
        let mut all = self.0.lock();
        if Datarep::of_name(name).is_some() || all.iter().any(|other| other.name() == text) {
            let what = format_args!("there is a data representation \"{text}\" already");
            return Err(Error::new(neutral::ERR_DUP_DATAREP, what));
        }
        has_memory()?;
        all.push(Arc::new(Representation::new(text, functions)));
        Ok(())
    }

    /// That of this name.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<Arc<Representation>> {
        self.0.lock().iter().find(|other| other.name().as_bytes() == name).cloned()
    }
}

/// How long items are in a representation of the program.
pub(super) struct OwnLengths<'a> {
    representation: &'a Representation,
    owner: Owner<'a>,
}

impl Lengths for OwnLengths<'_> {
    fn of(&self, item: &TypeRef) -> Result<i64, DatarepError> {
        let handle = item.handle();
        let found = self.representation.known.lock().iter().find(|(known, _)| *known == handle && handle != 0).copied();
        if let Some((_, extent)) = found {
            return Ok(extent);
        }
        let extent = self.representation.functions.extent(self.owner, item);
        match extent.map_err(|code| DatarepError::Refused(item.name(), code))? {
            extent @ 1..=0xffff_ffff => {
                // Types without a handle cannot be told from each other.
                if handle != 0 {
                    self.representation.known.lock().push((handle, extent));
                }
                Ok(extent)
            }
            extent => Err(DatarepError::Extent(item.name(), extent)),
        }
    }

    fn keeps(&self, datatype: &TypeRef) -> Result<bool, DatarepError> {
        Ok(Items::of(datatype, self)?.keep())
    }
}
