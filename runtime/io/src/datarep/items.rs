//! The items of a type: what each takes in memory and in a file. They are counted as the standard counts them: one for
//! each entry of the type map, so that a pair (`MPI_DOUBLE_INT`) is two.

use super::{DatarepError, Lengths};
use alloc::boxed::Box;
use alloc::vec::Vec;
use cohort_datatype::{Combiner, TypeRef, pair_members};

/// So many items, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// How many.
    pub items: u64,
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes in a file.
    pub file: u64,
}

impl Prefix {
    fn plus(self, other: Self) -> Self {
        Self { items: self.items + other.items, memory: self.memory + other.memory, file: self.file + other.file }
    }

    fn times(self, count: u64) -> Self {
        Self { items: self.items * count, memory: self.memory * count, file: self.file * count }
    }
}

/// Items in their order.
#[derive(Debug)]
pub struct Items {
    all: Prefix,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    One,
    Again(Box<Items>),
    Row(Vec<Items>),
}

/// Bytes in a file of a type that no constructor has made.
pub(super) fn length(datatype: &TypeRef, lengths: &dyn Lengths) -> Result<i64, DatarepError> {
    match pair_members(datatype) {
        Some([first, second]) => Ok(lengths.of(&first)? + lengths.of(&second)?),
        None => lengths.of(datatype),
    }
}

impl Items {
    /// Those of a type.
    ///
    /// # Errors
    /// Of the lengths.
    pub fn of(datatype: &TypeRef, lengths: &dyn Lengths) -> Result<Self, DatarepError> {
        let contents = datatype.contents();
        let combiner = contents.combiner;
        if combiner == Combiner::Struct {
            let counts = contents.integers.iter().map(|&it| i64::from(it)).chain(contents.counts.iter().copied());
            let counts: Vec<u64> = counts.skip(1).map(|count| count.max(0).cast_unsigned()).collect();
            let members = contents.types.iter().zip(counts);
            let row: Result<Vec<_>, _> = members.map(|(it, count)| Ok(Self::of(it, lengths)?.again(count))).collect();
            return Ok(Self::row(row?));
        }
        if let Some([first, second]) = pair_members(datatype) {
            return Ok(Self::row([Self::of(&first, lengths)?, Self::of(&second, lengths)?].into()));
        }
        let is_item = combiner == Combiner::Named || combiner.is_parametrised();
        match (is_item, contents.types.as_slice()) {
            (false, [old]) => {
                let one = Self::of(old, lengths)?;
                let count = datatype.size().checked_div(old.size()).unwrap_or(0);
                Ok(one.again(count.cast_unsigned()))
            }
            (false, parts @ [_, _, ..]) => {
                let row: Result<Vec<_>, _> = parts.iter().map(|it| Self::of(it, lengths)).collect();
                Ok(Self::row(row?))
            }
            _ => {
                let file = lengths.of(datatype)?.cast_unsigned();
                let all = Prefix { items: 1, memory: datatype.size().cast_unsigned(), file };
                Ok(Self { all, parts: Parts::One })
            }
        }
    }

    fn row(parts: Vec<Self>) -> Self {
        let all = parts.iter().fold(Prefix::default(), |sum, part| sum.plus(part.all));
        Self { all, parts: Parts::Row(parts) }
    }

    /// Those of so many instances, one behind the other.
    #[must_use]
    pub fn again(self, count: u64) -> Self {
        Self { all: self.all.times(count), parts: Parts::Again(Box::new(self)) }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Prefix {
        self.all
    }

    /// Whether each is as long in a file as in memory.
    #[must_use]
    pub fn keep(&self) -> bool {
        match &self.parts {
            Parts::One => self.all.memory == self.all.file,
            Parts::Again(part) => self.all.items == 0 || part.keep(),
            Parts::Row(parts) => parts.iter().all(Self::keep),
        }
    }

    /// The items that are whole in the first bytes of those in a file.
    #[must_use]
    pub fn within(&self, file: u64) -> Prefix {
        self.first(file, |prefix| prefix.file)
    }

    /// The first items, or all if there are fewer.
    #[must_use]
    pub fn of_count(&self, items: u64) -> Prefix {
        self.first(items, |prefix| prefix.items)
    }

    /// The longest prefix whose `measure` is `limit` at most.
    fn first(&self, limit: u64, measure: fn(Prefix) -> u64) -> Prefix {
        if measure(self.all) <= limit {
            return self.all;
        }
        match &self.parts {
            Parts::One => Prefix::default(),
            Parts::Again(part) => {
                // One of them is not empty: all are more than the limit.
                let whole = limit / measure(part.all);
                part.all.times(whole).plus(part.first(limit % measure(part.all), measure))
            }
            Parts::Row(parts) => {
                let mut sum = Prefix::default();
                for part in parts {
                    let left = limit - measure(sum);
                    sum = sum.plus(part.first(left, measure));
                    if measure(part.all) > left {
                        break;
                    }
                }
                sum
            }
        }
    }
}
