//! How functions are exported.

/// Exports a function under its names. A jump to the function itself: its own symbol is not exported, so whoever
/// defines `mpi_x_` and calls `pmpi_x_` does not meet itself.
macro_rules! names {
    ($function:path: $($name:ident)*) => {$(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            cohort_arch::jump!($function)
        }
    )*};
}
pub(crate) use names;
