//! What the machine's processor does best.

use core::arch::asm;
use core::sync::atomic::{AtomicU8, Ordering};
use raw_cpuid::CpuId;

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;

/// Whether `rep movsb` is the fastest way to move a long run. Every task finds the same, so none orders it (Relaxed).
static STRINGS: AtomicU8 = AtomicU8::new(UNKNOWN);

/// AMD's number of the first family (Zen 5) on which it was found to be.
const AMD_STRINGS: u8 = 0x1a;

/// Whether long runs are moved best by [`move_strings`].
#[inline]
pub(super) fn moves_strings_best() -> bool {
    match STRINGS.load(Ordering::Relaxed) {
        UNKNOWN => find(),
        known => known == YES,
    }
}

#[cold]
fn find() -> bool {
    let processor = CpuId::new();
    let is_amd = processor
        .get_vendor_info()
        .is_some_and(|vendor| vendor.as_str() == "AuthenticAMD");
    let is_new = processor
        .get_feature_info()
        .is_some_and(|features| features.family_id() >= AMD_STRINGS);
    let has_strings = processor
        .get_extended_feature_info()
        .is_some_and(|features| features.has_rep_movsb_stosb());
    let is_best = is_amd && is_new && has_strings;
    STRINGS.store(if is_best { YES } else { NO }, Ordering::Relaxed);
    is_best
}

/// Moves `bytes` bytes by the processor's instruction for strings.
///
/// # Safety
/// As `copy_nonoverlapping`.
#[inline]
pub(super) unsafe fn move_strings(from: *const u8, to: *mut u8, bytes: usize) {
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
