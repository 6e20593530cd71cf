//! Whatever comes over a control socket, frames and records are read or refused, and what is read can be sent again.

use pip_insight::control::wire::{Frame, REQUEST_MAX, Record};

/// One input. See the module page.
///
/// # Panics
/// There is a defect.
pub fn run(bytes: &[u8]) {
    let mut received = bytes.to_vec();
    let mut last = received.len();
    while let Ok(Some(frame)) = Frame::take(&mut received, REQUEST_MAX) {
        assert!(received.len() < last && frame.body.len() <= REQUEST_MAX);
        last = received.len();
        let sent = Frame::encode(frame.kind, &frame.body);
        assert_eq!(Frame::take(&mut sent.clone(), REQUEST_MAX), Ok(Some(frame.clone())));
    }
    let record = Record::decode(&String::from_utf8_lossy(bytes));
    assert_eq!(Record::decode(&record.encode()), record);
}
