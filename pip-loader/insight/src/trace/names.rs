//! Names of calls, which are strings of the node image.

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use std::collections::HashMap;
use std::io::IoSliceMut;

/// Those that were read, by address and length.
#[derive(Debug, Default)]
pub struct Names(pub HashMap<(u64, u8), String>);

impl Names {
    /// Reads the name at an address, which a program may have overwritten in its event.
    pub fn read(&mut self, address: u64, length: u8) {
        self.0.entry((address, length)).or_insert_with(|| {
            let mut bytes = vec![0; length.into()];
            let remote = RemoteIoVec { base: address as usize, len: length.into() };
            let own = nix::unistd::getpid();
            let read = process_vm_readv(own, &mut [IoSliceMut::new(&mut bytes)], &[remote]);
            let text = read.ok().and_then(|_| String::from_utf8(bytes).ok());
            text.unwrap_or_else(|| "a call of MPI".into())
        });
    }
}
