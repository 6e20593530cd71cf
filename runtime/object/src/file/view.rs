//! Views (MPI-5.0 section 14.3).

use super::File;
use super::error::{Shown, Trouble};
use super::representation::{Datarep, Representation};
use crate::failure::Outcome;
use crate::hints::file::FileHints;
use crate::info::Info;
use alloc::sync::Arc;
use cohort_abi::neutral;
use cohort_engine::datatype::TypeRef;
use cohort_io::datarep::{DatarepError, External32, in_file};
use cohort_io::{View, ViewError};

/// What a member sees of a file.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which bytes, in which order.
    pub view: Arc<View>,
    /// What they mean.
    pub datarep: Datarep,
    /// The etype and the filetype as the program has given them: those of the view are as long as in the file.
    pub types: [TypeRef; 2],
    /// The functions of [`Datarep::Program`].
    pub own: Option<Arc<Representation>>,
}

impl Seen {
    /// The name of the representation.
    #[must_use]
    pub fn datarep_name(&self) -> &str {
        match (self.datarep, &self.own) {
            (Datarep::Program, Some(own)) => own.name(),
            (Datarep::External32, _) => "external32",
            (Datarep::Internal, _) => "internal",
            _ => "native",
        }
    }

    /// What all members must have in common.
    fn word(&self) -> u64 {
        let name = self.own.as_ref().map_or(0, |own| own.number());
        (self.view.etype().extent() as u64) << 8 ^ self.datarep as u64 ^ name
    }

    /// All bytes, as every file begins.
    pub(super) fn bytes() -> Self {
        let view = View::bytes();
        let types = [view.etype().clone(), view.filetype().clone()];
        Self { view: Arc::new(view), datarep: Datarep::Native, types, own: None }
    }
}

/// Arguments of `MPI_File_set_view`.
pub struct Wanted<'a> {
    /// Where the view begins; `None` is where the shared pointer is.
    pub displacement: Option<i64>,
    /// The unit.
    pub etype: TypeRef,
    /// The template.
    pub filetype: TypeRef,
    /// The name of the representation.
    pub datarep: &'a [u8],
    /// The program's representation of that name, if there is one.
    pub own: Option<Arc<Representation>>,
}

impl File {
    /// What the caller sees.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.seen.lock().clone()
    }

    /// Which bytes the caller sees.
    pub(super) fn view(&self) -> Arc<View> {
        self.seen.lock().view.clone()
    }

    /// `MPI_File_set_view`; collective.
    ///
    /// # Errors
    /// Of the arguments, which may be wrong already; `MPI_ERR_NOT_SAME`, `MPI_ERR_UNSUPPORTED_DATAREP`.
    pub fn set_view(&self, wanted: Outcome<Wanted<'_>>, hints: Outcome<Info>) -> Outcome<()> {
        if self.is(neutral::MODE_SEQUENTIAL) {
            // The view may begin where the shared pointer is, which rests when all have come.
            self.agree(Ok(()))?;
        }
        let checked = self.no_split().and(wanted).map_err(Trouble::from).and_then(|wanted| self.check(&wanted));
        let checked = checked.and_then(|seen| Ok((seen, self.hinted(&hints?, "MPI_File_set_view"))));
        let said = checked.as_ref().map(|(seen, hints)| [seen.word(), hints.word()]).map_err(Clone::clone);
        self.all_say_both(said, ["the etype's extent or the data representation", FileHints::what()])?;
        let (seen, hints) = checked.map_err(|trouble| trouble.error)?;
        *self.seen.lock() = seen;
        *self.hints.lock() = hints;
        self.position.with(|position| *position = 0);
        let moved = self.set_shared(0);
        // Nobody uses the shared pointer before it is where it should be.
        self.agree(moved)
    }

    fn check(&self, wanted: &Wanted<'_>) -> Result<Seen, Trouble> {
        let datarep = match (Datarep::of_name(wanted.datarep), &wanted.own) {
            (Some(known), _) => known,
            (None, Some(_)) => Datarep::Program,
            (None, None) => {
                let what = format_args!(
                    "\"{}\" is none of \"native\", \"internal\" and \"external32\", and not registered",
                    Shown(wanted.datarep)
                );
                return Err(Trouble::new(neutral::ERR_UNSUPPORTED_DATAREP, what));
            }
        };
        let displacement = self.displacement(wanted.displacement)?;
        let writes = !self.is(neutral::MODE_RDONLY);
        let types = [wanted.etype.clone(), wanted.filetype.clone()];
        let [etype, filetype] = match datarep {
            Datarep::Native | Datarep::Internal => types.clone(),
            Datarep::External32 | Datarep::Program => {
                let there = |datatype| self.in_file(datatype, wanted.own.as_deref());
                [there(&types[0])?, there(&types[1])?]
            }
        };
        let own = wanted.own.clone().filter(|_| datarep == Datarep::Program);
        let view = View::new(displacement, etype, filetype, writes);
        Ok(Seen { view: Arc::new(view.map_err(refused)?), datarep, types, own })
    }

    /// The form of a type in a file of `external32`, or of the program's representation.
    fn in_file(&self, datatype: &TypeRef, own: Option<&Representation>) -> Result<TypeRef, Trouble> {
        match own {
            None => in_file(datatype, &External32),
            Some(own) => in_file(datatype, &own.lengths(crate::owner_of(self.comm.rank()))),
        }
        .map_err(unfit)
    }

    /// How far apart elements of a type lie in the file (`MPI_File_get_type_extent`).
    ///
    /// # Errors
    /// Of types that the representation does not have.
    pub fn type_extent(&self, datatype: &TypeRef) -> Outcome<i64> {
        let seen = self.seen();
        match seen.datarep {
            Datarep::Native | Datarep::Internal => Ok(datatype.extent()),
            Datarep::External32 | Datarep::Program => {
                let there = self.in_file(datatype, seen.own.as_deref());
                there.map(|there| there.extent()).map_err(|trouble| trouble.error)
            }
        }
    }

    fn displacement(&self, wanted: Option<i64>) -> Result<u64, Trouble> {
        let refused = |what: core::fmt::Arguments<'_>| Err(Trouble::new(neutral::ERR_DISP, what));
        match (wanted, self.is(neutral::MODE_SEQUENTIAL)) {
            (Some(displacement), false) => match u64::try_from(displacement) {
                Ok(displacement) => Ok(displacement),
                Err(_) => refused(format_args!("disp is {displacement}")),
            },
            (None, true) => {
                let offset = self.view().offset(self.shared_position()?);
                offset.map_err(|_| Trouble::new(neutral::ERR_DISP, format_args!("it is beyond all offsets")))
            }
            (None, false) => refused(format_args!("MPI_DISPLACEMENT_CURRENT is for MPI_MODE_SEQUENTIAL")),
            (Some(_), true) => refused(format_args!("MPI_MODE_SEQUENTIAL needs MPI_DISPLACEMENT_CURRENT")),
        }
    }
}

/// The error of data that has no form in a representation.
#[cold]
pub(super) fn unfit(error: DatarepError) -> Trouble {
    match error {
        DatarepError::Unfit(_) => {
            Trouble::new(neutral::ERR_CONVERSION, format_args!("a value does not fit into its type in external32"))
        }
        DatarepError::NoMemory => neutral::ERR_NO_MEM.into(),
        DatarepError::Type(_) => Trouble::new(neutral::ERR_TYPE, format_args!("the representation has no such type")),
        DatarepError::Constructor(_) => {
            let what = format_args!("distributed arrays of types that have another length in the file");
            Trouble::new(neutral::ERR_UNSUPPORTED_OPERATION, what)
        }
        DatarepError::Refused(name, code) => {
            let what = format_args!("the program's extent function gives error {code} for {name}");
            Trouble::new(neutral::ERR_CONVERSION, what)
        }
        DatarepError::Extent(name, extent) => {
            let what = format_args!("the program's extent function gives {extent} bytes for {name}");
            Trouble::new(neutral::ERR_CONVERSION, what)
        }
    }
}

/// The error of a view that the standard forbids.
#[cold]
fn refused(error: ViewError) -> Trouble {
    match error {
        ViewError::EmptyEtype => Trouble::new(neutral::ERR_TYPE, format_args!("the etype has no data")),
        ViewError::Indivisible { etype, filetype } => {
            let what = format_args!("the filetype's {filetype} bytes are not made of etypes of {etype} bytes");
            Trouble::new(neutral::ERR_TYPE, what)
        }
        ViewError::Negative { displacement } => {
            Trouble::new(neutral::ERR_TYPE, format_args!("the filetype has the negative displacement {displacement}"))
        }
        ViewError::Decreasing => {
            Trouble::new(neutral::ERR_TYPE, format_args!("displacements of the filetype decrease"))
        }
        ViewError::Overlapping => {
            let what = format_args!("the filetype overlaps itself, and the file is open for writing");
            Trouble::new(neutral::ERR_TYPE, what)
        }
        ViewError::Overflow => Trouble::new(neutral::ERR_ARG, format_args!("the view reaches beyond all offsets")),
    }
}
