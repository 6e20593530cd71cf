//! Which bytes of a chunk have data.

use alloc::vec::Vec;
use core::ops::Range;
use rustix::io::Errno;

/// Bytes of a chunk: few enough to stay in the cache, a multiple of what file systems move at once.
/// Tests have many of them.
pub(super) const CHUNK: u64 = if cfg!(test) { 256 } else { 256 << 10 };

/// Bytes of memory that it takes.
pub(super) const COVER: u64 = CHUNK / 8;

/// A bit for each byte of a chunk.
#[derive(Default)]
pub(super) struct Cover {
    words: Vec<u64>,
}

impl Cover {
    /// Forgets all, and has room for so many bytes.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(super) fn clear(&mut self, bytes: u64) -> Result<(), Errno> {
        let words = bytes.div_ceil(64) as usize;
        self.words.clear();
        self.words.try_reserve_exact(words).map_err(|_| Errno::NOMEM)?;
        self.words.resize(words, 0);
        Ok(())
    }

    /// Bytes `from..to` have data; there is one at least.
    #[inline]
    pub(super) fn mark(&mut self, from: u64, to: u64) {
        let (first, last) = ((from / 64) as usize, ((to - 1) / 64) as usize);
        // The bits of a word from the first byte on, and up to the last.
        let (above, below) = (u64::MAX << (from % 64), u64::MAX >> (63 - (to - 1) % 64));
        let words = &mut self.words[first..=last];
        match words {
            [word] => *word |= above & below,
            [head, whole @ .., tail] => {
                *head |= above;
                whole.fill(u64::MAX);
                *tail |= below;
            }
            [] => {}
        }
    }

    /// All runs of bytes with data.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<u64>> + Clone + use<'_> {
        let mut from = 0;
        core::iter::from_fn(move || self.run(from).inspect(|run| from = run.end))
    }

    /// The bytes with data at or behind `from`, up to the first without.
    pub(super) fn run(&self, from: u64) -> Option<Range<u64>> {
        let start = self.first(from, 0)?;
        Some(start..self.first(start, u64::MAX).unwrap_or(self.words.len() as u64 * 64))
    }

    /// The first bit at or behind `from` that differs from those of `others`.
    fn first(&self, from: u64, others: u64) -> Option<u64> {
        let skip = (from / 64) as usize;
        let mut mask = u64::MAX << (from % 64);
        for (index, word) in self.words.iter().enumerate().skip(skip) {
            let bits = (word ^ others) & mask;
            if bits != 0 {
                return Some(index as u64 * 64 + u64::from(bits.trailing_zeros()));
            }
            mask = u64::MAX;
        }
        None
    }
}
