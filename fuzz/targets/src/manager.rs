//! A process manager may answer what it likes: the client ends with a result or a failure.

use cohort_manager::wireup::{NodeInfo, Numbering, exchange};
use cohort_manager::{Manager, Place, pmi1, pmi2};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

/// Clients of the job.
const COUNT: u32 = 3;

/// A manager that has said everything in advance, and does not listen.
struct Script<'a>(&'a [u8]);

impl Read for Script<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Script<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Script<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        static NOTHING: OnceLock<File> = OnceLock::new();
        let open = || File::open("/dev/null").expect("every system has one");
        NOTHING.get_or_init(open).as_fd()
    }
}

/// All that a launcher asks.
fn use_up(manager: &mut dyn Manager) {
    let own = NodeInfo { ranks: 2, programs: 1, numbering: Numbering::Block, ..NodeInfo::default() };
    if manager.place().count > COUNT {
        return;
    }
    if let Ok(world) = exchange(manager, &own) {
        let nodes = 0..manager.place().count;
        let ranks = nodes.map(|node| world.ranks_of(node).len());
        assert_eq!(ranks.sum::<usize>(), world.homes.len());
        let _ = world.cpus(1);
    }
    let _ = manager.application();
    let _ = manager.finalize();
}

/// One input. See the module page.
///
/// # Panics
/// There is a defect.
pub fn run(bytes: &[u8]) {
    let place = Place { index: 1, count: COUNT };
    if let Ok(mut client) = pmi1::Client::start(Script(bytes), place) {
        use_up(&mut client);
    }
    if let Ok(mut client) = pmi1::Client::start_by_port(Script(bytes), "1") {
        use_up(&mut client);
    }
    if let Ok(mut client) = pmi2::Client::start(Script(bytes), "job", "1") {
        use_up(&mut client);
    }
}
