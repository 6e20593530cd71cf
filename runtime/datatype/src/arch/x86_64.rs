//! x86-64.

use core::arch::asm;
use core::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};
use core::sync::atomic::{AtomicU8, Ordering};
use raw_cpuid::CpuId;

pub(crate) mod long_double;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

cpufeatures::new!(avx, "avx");

/// Facts about the processor; none until they have been found.
const KNOWN: u8 = 1;
const STRINGS_ARE_BEST: u8 = 2;
const STRINGS_WAIT: u8 = 4;

/// What is known. Every task finds the same, so none orders it (Relaxed).
static FACTS: AtomicU8 = AtomicU8::new(0);

/// AMD's number of the first family (Zen 5) on which `rep movsb` was found to be the fastest way.
const AMD_STRINGS: u8 = 0x1a;

/// AMD's number of the first family (Zen 3) whose `rep movsb` waits for its own stores.
const AMD_WAITS: u8 = 0x19;

#[inline]
fn is(fact: u8) -> bool {
    let known = FACTS.load(Ordering::Relaxed);
    let known = if known == 0 { find() } else { known };
    known & fact != 0
}

/// Whether long runs are moved best by [`move_strings`].
#[inline]
pub(crate) fn moves_strings_best() -> bool {
    is(STRINGS_ARE_BEST)
}

/// Whether `rep movsb`, of C libraries too, takes many times as long if the destination is up to 15 bytes ahead of the
/// source in its page. If so, the processor has the vectors of [`moves_by_vectors`].
#[inline]
pub(crate) fn strings_wait_for_stores() -> bool {
    is(STRINGS_WAIT)
}

/// Whether this machine has vectors of 256 bits (AVX).
#[inline]
pub(crate) fn moves_by_vectors() -> bool {
    avx::get()
}

#[cold]
fn find() -> u8 {
    let processor = CpuId::new();
    let is_amd = processor.get_vendor_info().is_some_and(|vendor| vendor.as_str() == "AuthenticAMD");
    let family = processor.get_feature_info().map_or(0, |features| features.family_id());
    let has_strings = processor.get_extended_feature_info().is_some_and(|features| features.has_rep_movsb_stosb());
    let mut facts = KNOWN;
    if is_amd && has_strings && family >= AMD_STRINGS {
        facts |= STRINGS_ARE_BEST;
    }
    if is_amd && has_strings && family >= AMD_WAITS && moves_by_vectors() {
        facts |= STRINGS_WAIT;
    }
    FACTS.store(facts, Ordering::Relaxed);
    facts
}

/// Moves `bytes` bytes by the processor's instruction for strings.
///
/// # Safety
/// As `copy_nonoverlapping`.
#[inline]
pub(crate) unsafe fn move_strings(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise; strings run forwards, as the ABI says.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Moves a run line by line with vectors.
///
/// # Safety
/// As `copy_nonoverlapping`, for at least a line; the processor knows AVX.
#[target_feature(enable = "avx")]
pub(crate) unsafe fn move_lines(from: *const u8, to: *mut u8, bytes: usize) {
    let whole = bytes / LINE * LINE;
    // SAFETY: the caller's conditions; part of the last line may have been moved before, to the same bytes.
    unsafe {
        for at in (0..whole).step_by(LINE) {
            move_line(from.add(at), to.add(at));
        }
        move_line(from.add(bytes - LINE), to.add(bytes - LINE));
    }
}

/// Moves a line, in the order of its bytes.
///
/// # Safety
/// As `copy_nonoverlapping` with a line.
#[inline]
#[target_feature(enable = "avx")]
unsafe fn move_line(from: *const u8, to: *mut u8) {
    let (from, to) = (from.cast::<__m256i>(), to.cast::<__m256i>());
    // SAFETY: the caller's promise for both halves; these have no alignment.
    unsafe {
        let first = _mm256_loadu_si256(from);
        let second = _mm256_loadu_si256(from.add(1));
        _mm256_storeu_si256(to, first);
        _mm256_storeu_si256(to.add(1), second);
    }
}
