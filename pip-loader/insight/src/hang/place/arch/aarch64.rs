//! 64-bit ARM.

use libc::user_regs_struct;
use pip_load::task::crash::Registers;

/// The registers in the order of DWARF.
pub fn in_order(it: user_regs_struct) -> Registers {
    std::array::from_fn(|register| it.regs.get(register).copied().unwrap_or(if register == 31 { it.sp } else { it.pc }))
}
