//! Info objects (MPI 10): ordered pairs of strings, which are bytes as the program gave them. What the runtime reads
//! itself is text.

use crate::failure::{Outcome, has_memory};
use alloc::string::String;
use alloc::vec::Vec;
use cohort_abi::neutral;
use spin::Mutex;

/// Longest key, without the terminating NUL (`MPI_MAX_INFO_KEY - 1` of either ABI).
pub const KEY_MAX: usize = 255;

/// Longest value, without the terminating NUL (`MPI_MAX_INFO_VAL - 1` of either ABI).
pub const VALUE_MAX: usize = 1023;

/// Pairs of key and value, in the order of insertion.
#[derive(Debug, Default)]
pub struct Info(Mutex<Vec<(Vec<u8>, Vec<u8>)>>);

impl Clone for Info {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().clone()))
    }
}

impl Info {
    /// [`Info::set_bytes`] of text.
    ///
    /// # Errors
    /// As there.
    pub fn set(&self, key: &str, value: &str) -> Outcome<()> {
        self.set_bytes(key.as_bytes(), value.as_bytes())
    }

    /// `MPI_Info_set`.
    ///
    /// # Errors
    /// `MPI_ERR_INFO_KEY` for a key that is empty or too long, `MPI_ERR_INFO_VALUE` for a value that is too long,
    /// `MPI_ERR_NO_MEM`.
    pub fn set_bytes(&self, key: &[u8], value: &[u8]) -> Outcome<()> {
        Self::check_key(key)?;
        if value.len() > VALUE_MAX {
            return Err(neutral::ERR_INFO_VALUE.into());
        }
        has_memory()?;
        let mut pairs = self.0.lock();
        match pairs.iter_mut().find(|(other, _)| other == key) {
            Some((_, old)) => *old = value.into(),
            None => pairs.push((key.into(), value.into())),
        }
        Ok(())
    }

    /// Forgets the keys of `room` bytes and more, which would reach a program cut.
    pub fn keep_shorter(&self, room: usize) {
        self.0.lock().retain(|(key, _)| key.len() < room);
    }

    /// Refuses a key that no info object can hold.
    ///
    /// # Errors
    /// `MPI_ERR_INFO_KEY`.
    pub fn check_key(key: &[u8]) -> Outcome<()> {
        if key.is_empty() || key.len() > KEY_MAX { Err(neutral::ERR_INFO_KEY.into()) } else { Ok(()) }
    }

    /// The value of a key as the runtime reads it: text, without blanks at its ends.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<String> {
        let value = self.value(key.as_bytes())?;
        Some(core::str::from_utf8(&value).ok()?.trim_matches(' ').into())
    }

    /// The value of a key, as it was given.
    #[must_use]
    pub fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        let pairs = self.0.lock();
        pairs.iter().find(|(other, _)| other == key).map(|(_, value)| value.clone())
    }

    /// `MPI_Info_delete`.
    ///
    /// # Errors
    /// `MPI_ERR_INFO_NOKEY`.
    pub fn delete(&self, key: &[u8]) -> Outcome<()> {
        let mut pairs = self.0.lock();
        let index = pairs.iter().position(|(other, _)| other == key);
        pairs.remove(index.ok_or(neutral::ERR_INFO_NOKEY)?);
        Ok(())
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether it has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key with this number.
    #[must_use]
    pub fn nth_key(&self, index: usize) -> Option<Vec<u8>> {
        self.0.lock().get(index).map(|(key, _)| key.clone())
    }
}
