//! Gives the library its name, and has it load the C library.

#[path = "../over.rs"]
mod over;

fn main() {
    over::link("libmpi_mpifh.so.40", "libmpi.so.40");
}
