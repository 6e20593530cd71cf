//! Gives the library its name, and has it load the C library.

#[path = "../over.rs"]
mod over;

fn main() {
    over::link("libmpifort.so.12", "libmpi.so.12");
}
