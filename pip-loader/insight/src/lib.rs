//! What `pip-exec` tells of a job that runs, waits for ever, has failed or is over.
//!
//! | module | what it knows |
//! |---|---|
//! | [`ask`] | what a user may ask of running jobs |
//! | [`control`] | asks them, answers, and makes the tables of `--top` |
//! | [`fault`] | whose memory an address is |
//! | [`check`] | what a checker has found in the calls of a program |
//! | [`memory`] | how much of it a rank has |
//! | [`backtrace`] | where in its program a rank is |
//! | [`hang`] | what ranks wait for, and whether that can end |
//! | [`stats`] | what they have counted, as text and as a page |
//! | [`trace`] | notes what happens, and writes it as a timeline |
//! | [`draw`] | draws timelines |

pub mod ask;
pub mod backtrace;
pub mod check;
pub mod control;
pub mod draw;
pub mod fault;
pub mod hang;
pub mod memory;
pub mod stats;
pub mod trace;
