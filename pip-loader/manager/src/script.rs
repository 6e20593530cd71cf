//! Managers that follow a script, for tests.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// What a client must say, and what it is answered.
pub type Line = (&'static str, &'static str);

/// A stream at whose other end a manager follows the script and then goes. Ends the test
/// when the client says anything else.
pub fn scripted(script: impl IntoIterator<Item = Line>) -> UnixStream {
    play(script.into_iter().collect()).0
}

/// As [`scripted`]; the thread ends with the script.
pub fn play(script: Vec<Line>) -> (UnixStream, JoinHandle<()>) {
    let (client, mut manager) = UnixStream::pair().expect("descriptors");
    let thread = std::thread::spawn(move || {
        for (request, answer) in script {
            let mut heard = vec![0; request.len()];
            manager.read_exact(&mut heard).expect("a whole request");
            assert_eq!(String::from_utf8_lossy(&heard), request);
            manager.write_all(answer.as_bytes()).expect("it listens");
        }
    });
    (client, thread)
}
