//! What reads bytes from outside, each as a function of bytes that panics when it finds a defect.
//!
//! `make fuzz` compiles them with instrumentation and looks for inputs by coverage. The tests of this crate give them
//! valid input, and thousands of inputs that were made of it by chance, always the same ones.

pub mod addresses;
pub mod control;
pub mod elf;
pub mod manager;
pub mod proof;
pub mod server;
pub mod settings;
