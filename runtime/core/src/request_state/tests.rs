use super::*;

/// Under loom, which reports every unordered access.
#[cfg(loom)]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// A send that is offered.
    struct Send {
        state: RequestState,
        /// The user's buffer: 7 while the send is under way.
        buffer: UnsafeCell<u32>,
        /// The sender's copy of it.
        copy: UnsafeCell<u32>,
        /// 1 once it is freed.
        record: UnsafeCell<u32>,
    }

    impl Send {
        fn new() -> Arc<Self> {
            let state = RequestState::of(PENDING);
            let (buffer, copy, record) = (UnsafeCell::new(7), UnsafeCell::new(0), UnsafeCell::new(0));
            Arc::new(Self { state, buffer, copy, record })
        }

        fn free(&self) {
            // SAFETY: loom checks that nobody else accesses it.
            self.record.with_mut(|record| unsafe { *record += 1 });
        }

        /// What the receiver of the message got, if it was not withdrawn.
        fn receive(&self) -> Option<u32> {
            if !self.state.take_rts() {
                if self.state.drop_rts() {
                    self.free();
                }
                return None;
            }
            if !self.state.is_buffered() {
                // SAFETY: loom checks that nobody writes there meanwhile.
                let data = self.buffer.with(|buffer| unsafe { *buffer });
                self.state.complete();
                return Some(data);
            }
            // SAFETY: as above.
            let data = self.copy.with(|copy| unsafe { *copy });
            if self.state.drop_buffered() {
                self.free();
            }
            Some(data)
        }

        /// The sender waits until the send is over, writes to its buffer, and releases the request.
        fn leave(&self) {
            while !self.state.is_complete() {
                thread::yield_now();
            }
            // SAFETY: loom checks that nobody reads it any more.
            self.buffer.with_mut(|buffer| unsafe { *buffer = 0 });
            if !self.state.leave_to_receiver() {
                self.free();
            }
        }
    }

    /// What the sender does after a while, beside a receiver.
    fn model(after_a_while: fn(&Send) -> bool, is_received: fn(bool) -> bool) {
        loom::model(move || {
            let send = Send::new();
            let receiver = thread::spawn({
                let send = send.clone();
                move || send.receive()
            });
            let has_acted = after_a_while(&send);
            send.leave();
            let received = receiver.join().unwrap();
            assert_eq!(received, is_received(has_acted).then_some(7));
            // SAFETY: both are over.
            assert_eq!(send.record.with(|record| unsafe { *record }), 1, "freed once");
        });
    }

    #[test]
    fn a_lent_send_is_received_from_the_buffer_or_its_copy() {
        let buffer = |send: &Send| {
            // SAFETY: loom checks that nobody reads it yet.
            send.copy.with_mut(|copy| unsafe { *copy = 7 });
            send.state.buffer()
        };
        model(buffer, |_| true);
    }

    #[test]
    fn a_withdrawn_send_is_received_or_not() {
        model(|send| send.state.withdraw(), |is_withdrawn| !is_withdrawn);
    }
}

#[cfg(not(loom))]
mod states {
    use super::*;

    #[test]
    fn only_the_first_to_come_has_an_offered_send() {
        let acts: [fn(&RequestState) -> bool; 3] =
            [RequestState::take_rts, RequestState::withdraw, RequestState::buffer];
        for first in 0..acts.len() {
            for second in 1..acts.len() {
                let state = RequestState::of(PENDING);
                assert!(acts[first](&state));
                assert!(!acts[second](&state), "{second} after {first}");
            }
        }
        let state = RequestState::of(PENDING);
        assert!(state.buffer() && state.take_rts() && state.is_buffered() && state.is_complete());
    }
}
