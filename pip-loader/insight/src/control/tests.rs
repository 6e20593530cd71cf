use super::client::Described;
use super::wire::Record;
use super::*;

/// A job's side whose answers are a record with its name.
struct Served {
    control: Control,
    name: &'static str,
}

impl Served {
    fn new(name: &'static str) -> Self {
        // Tests run side by side, and jobs may run on the machine.
        let control = Control::listen(name);
        assert!(control.listener.is_some(), "no socket");
        Self { control, name }
    }

    fn turn(&mut self) {
        let name = self.name;
        self.control.serve(|_, request| {
            Some(match request.kind {
                Kind::Describe => {
                    let mut record = Record::default();
                    record.add("command", name).add("pids", "77 78");
                    record.encode().into_bytes()
                }
                Kind::Picture => b"a picture".repeat(1 << 16),
                Kind::Sample => Vec::new(),
            })
        });
    }

    fn address(&self) -> SocketAddr {
        let listener = self.control.listener.as_ref().expect("opened");
        listener.local_addr().expect("bound")
    }

    fn stranger(&self) -> UnixStream {
        UnixStream::connect_addr(&self.address()).expect("room in the queue")
    }

    /// Takes turns until `done`.
    fn serve<T: Send>(&mut self, done: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(done);
            while !thread.is_finished() {
                self.turn();
                std::thread::yield_now();
            }
            thread.join().expect("no panic")
        })
    }
}

fn commands(jobs: &[Described]) -> Vec<&str> {
    let records = jobs.iter().filter_map(|(_, record)| record.as_ref());
    records.map(|record| record.get("command")).collect()
}

#[test]
fn jobs_are_listed_and_asked_and_vanish() {
    let mut served = Served::new("test-listed-");
    let jobs = served.serve(|| client::jobs_at("test-listed-")).expect("a list");
    assert_eq!(commands(&jobs), ["test-listed-"]);
    let mut stream = served.stranger();
    let picture = served.serve(|| {
        let request = Frame::encode(Kind::Picture, &[]);
        stream.write_all(&request).expect("room");
        let mut head = [0; HEAD];
        stream.read_exact(&mut head).expect("an answer");
        let mut picture = vec![0; 9 << 16];
        stream.read_exact(&mut picture).expect("all of it");
        picture
    });
    assert!(picture.ends_with(b"a picture"));
    assert!(!served.control.is_watched());
    drop(served);
    let jobs = client::jobs_at("test-listed-").expect("a list");
    assert!(jobs.is_empty());
}

#[test]
fn what_is_no_request_ends_its_connection_alone() {
    let mut served = Served::new("test-bothered-");
    let mut strangers: Vec<_> = (0..CLIENTS_MAX - 1).map(|_| served.stranger()).collect();
    strangers[0].write_all(b"GET / HTTP/1.1\r\n").expect("room");
    strangers[1].write_all(&[0; 4096]).expect("room");
    let mut long = Frame::encode(Kind::Describe, &[0; REQUEST_MAX + 1]);
    strangers[2].write_all(&long).expect("room");
    long.truncate(HEAD - 1);
    strangers[3].write_all(&long).expect("room");
    while served.control.clients.len() < strangers.len() - 3 {
        served.turn();
    }
    for stranger in &mut strangers[..3] {
        served.turn();
        assert!(matches!(stranger.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
    // The one that has begun and those that say nothing keep their places, but not for ever.
    let until = served.control.until().expect("somebody is there");
    assert!(until <= Instant::now() + PATIENCE);
    assert_eq!(served.control.clients.len(), CLIENTS_MAX - 4);
    let jobs = served.serve(|| client::jobs_at("test-bothered-")).expect("a list");
    assert_eq!(commands(&jobs), ["test-bothered-"]);
    for client in &mut served.control.clients {
        client.until = Instant::now();
    }
    served.turn();
    assert_eq!(served.control.clients.len(), 0);
}

#[test]
fn connections_are_few_and_their_answers_wait_for_no_reader() {
    let mut served = Served::new("test-busy-");
    let request = Frame::encode(Kind::Picture, &[]);
    let strangers: Vec<_> = (0..40)
        .map(|_| {
            let mut stranger = served.stranger();
            stranger.write_all(&request).expect("room");
            stranger
        })
        .collect();
    for _ in 0..100 {
        served.turn();
        assert!(served.control.clients.len() <= CLIENTS_MAX);
    }
    // Nobody reads: answers stay where they are, and whoever comes later is not even looked at.
    assert_eq!(served.control.clients.len(), CLIENTS_MAX);
    assert_eq!(served.control.sources().count(), CLIENTS_MAX);
    drop(strangers);
    while !served.control.clients.is_empty() {
        served.turn();
    }
}
