//! A program that `pip-exec` has started may say to it what it likes: it is answered or refused, and nobody waits.

use cohort_manager::server::Server;
use std::io::Write;
use std::os::unix::net::UnixStream;

/// One input. See the module page.
///
/// # Panics
/// There is a defect.
pub fn run(bytes: &[u8]) {
    let ranks = vec![0, 1];
    let Ok((mut server, ends)) = Server::new(ranks.clone(), ranks, 2) else {
        return;
    };
    let mut clients: Vec<_> = ends.into_iter().map(UnixStream::from).collect();
    for client in &clients {
        client.set_nonblocking(true).expect("a socket");
    }
    // Each line goes to the client that its first byte names.
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let client = usize::from(line[0] % 2);
        let _ = clients[client].write_all(&line[1..]);
        if server.serve(false).is_err() {
            return;
        }
    }
    let _ = (server.misses(0), server.stage(1), server.abort_code());
    clients.clear();
    let _ = server.serve(false);
    assert_eq!(server.descriptors().count(), 0, "an end is not noticed");
}
