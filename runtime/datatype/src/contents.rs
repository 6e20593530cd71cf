//! How a datatype was made, as `MPI_Type_get_envelope` and `MPI_Type_get_contents` tell it.

use super::{BoundsRule, TypeRef};
use alloc::vec::Vec;

/// The constructor that made a datatype; the discriminants are the MPI-5 ABI's.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combiner {
    /// Predefined.
    Named = 101,
    /// `MPI_Type_dup`.
    Dup = 102,
    /// `MPI_Type_contiguous`.
    Contiguous = 103,
    /// `MPI_Type_vector`.
    Vector = 104,
    /// `MPI_Type_create_hvector`.
    Hvector = 105,
    /// `MPI_Type_indexed`.
    Indexed = 106,
    /// `MPI_Type_create_hindexed`.
    Hindexed = 107,
    /// `MPI_Type_create_indexed_block`.
    IndexedBlock = 108,
    /// `MPI_Type_create_hindexed_block`.
    HindexedBlock = 109,
    /// `MPI_Type_create_struct`.
    Struct = 110,
    /// `MPI_Type_create_subarray`.
    Subarray = 111,
    /// `MPI_Type_create_darray`.
    Darray = 112,
    /// `MPI_Type_create_f90_real`.
    F90Real = 113,
    /// `MPI_Type_create_f90_complex`.
    F90Complex = 114,
    /// `MPI_Type_create_f90_integer`.
    F90Integer = 115,
    /// `MPI_Type_create_resized`.
    Resized = 116,
    /// `MPI_Type_get_value_index`.
    ValueIndex = 117,
}

/// Whether the `int` or the large-count (`_c`) procedure made the type; the two report
/// their arguments in different arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountForm {
    /// `MPI_Type_vector` and its like.
    Int,
    /// `MPI_Type_vector_c` and its like.
    Large,
}

/// How a constructor is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// By which procedure.
    pub counts: CountForm,
    /// How bounds follow from those of the members.
    pub bounds: BoundsRule,
}

impl From<CountForm> for Form {
    /// By the standard's rule.
    fn from(counts: CountForm) -> Self {
        Self { counts, bounds: BoundsRule::Standard }
    }
}

impl Combiner {
    /// Whether it makes the unnamed predefined types of Fortran's kinds.
    #[must_use]
    pub fn is_parametrised(self) -> bool {
        matches!(self, Self::F90Real | Self::F90Complex | Self::F90Integer)
    }
}

/// The arguments of the constructor call, in the order that MPI-4.1 section 5.1.13 fixes.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The constructor.
    pub combiner: Combiner,
    /// Arguments of type `int`.
    pub integers: Vec<i32>,
    /// Arguments of type `MPI_Aint`.
    pub addresses: Vec<i64>,
    /// Arguments of type `MPI_Count` (large-count procedures only).
    pub counts: Vec<i64>,
    /// Argument datatypes.
    pub types: Vec<TypeRef>,
    /// The rule by which the bounds were found.
    pub bounds: BoundsRule,
}

impl Contents {
    /// Contents of a predefined type: nothing.
    pub(super) const fn named() -> Self {
        Self::of(Combiner::Named)
    }

    pub(super) const fn of(combiner: Combiner) -> Self {
        Self::by(combiner, BoundsRule::Standard)
    }

    /// Of a type whose bounds follow from others by this rule.
    pub(super) const fn by(combiner: Combiner, bounds: BoundsRule) -> Self {
        Self { combiner, integers: Vec::new(), addresses: Vec::new(), counts: Vec::new(), types: Vec::new(), bounds }
    }

    pub(super) fn with_type(mut self, datatype: &TypeRef) -> Self {
        self.types.push(datatype.clone());
        self
    }

    /// Adds arguments that are `int` in one form and `MPI_Count` in the other.
    pub(super) fn with_counts(mut self, form: Form, values: &[i64]) -> Self {
        match form.counts {
            // The int procedures passed ints, so nothing is cut.
            CountForm::Int => self.integers.extend(values.iter().map(|&value| value as i32)),
            CountForm::Large => self.counts.extend_from_slice(values),
        }
        self
    }

    /// Adds arguments that are `MPI_Aint` in one form and `MPI_Count` in the other.
    pub(super) fn with_addresses(mut self, form: Form, values: &[i64]) -> Self {
        match form.counts {
            CountForm::Int => self.addresses.extend_from_slice(values),
            CountForm::Large => self.counts.extend_from_slice(values),
        }
        self
    }

    /// Adds arguments that are `int` in both forms.
    pub(super) fn with_integers(mut self, values: &[i32]) -> Self {
        self.integers.extend_from_slice(values);
        self
    }
}
