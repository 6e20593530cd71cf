//! Memory where messages are put together and taken apart. Any task may use it: nothing here allocates.

use cohort_datatype::Buffer;

/// Bytes of memory that somebody keeps, where messages are put together and taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    base: *mut u8,
    length: u64,
}

impl Bytes {
    /// Those of memory.
    ///
    /// # Safety
    /// They are there, and no reference to them is used, as long as copies of this, or buffers of it, are used. Of
    /// several tasks that do so those that read come behind those that have written.
    pub(crate) unsafe fn new(base: *mut u8, length: u64) -> Self {
        Self { base, length }
    }

    /// How many there are.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Some of them.
    pub(crate) fn part(&self, from: u64, length: u64) -> Self {
        assert!(from <= self.length && length <= self.length - from, "the memory has no such bytes");
        Self { base: self.base.wrapping_add(from as usize), length }
    }

    /// As a buffer.
    pub(crate) fn buffer(&self) -> Buffer<'static> {
        // SAFETY: by `new`.
        unsafe { Buffer::of_bytes(self.base, self.length) }
    }

    /// The word at byte `at`.
    pub(crate) fn word(&self, at: u64) -> u64 {
        let word = self.part(at, size_of::<u64>() as u64);
        // SAFETY: by `new`, there are so many bytes.
        unsafe { word.base.cast::<u64>().read_unaligned() }
    }

    /// Writes the word at byte `at`.
    pub(crate) fn set_word(&self, at: u64, value: u64) {
        let word = self.part(at, size_of::<u64>() as u64);
        // SAFETY: as in `word`.
        unsafe { word.base.cast::<u64>().write_unaligned(value) };
    }
}
