//! Managers that are threads around a table, for tests.

use crate::watch::Aborter;
use crate::{Failure, Limits, Manager, Place};
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Barrier, Mutex};

/// Threads that are each other's clients.
#[derive(Debug)]
pub struct Table {
    place: Place,
    values: Arc<Mutex<HashMap<String, String>>>,
    barrier: Arc<Barrier>,
}

impl Table {
    /// The managers of a job of so many nodes, for a thread each.
    #[must_use]
    pub fn of(count: u32) -> Vec<Self> {
        let values = Arc::default();
        let barrier = Arc::new(Barrier::new(count as usize));
        let place = |index| Place { index, count };
        let table = |index| Self { place: place(index), values: Arc::clone(&values), barrier: Arc::clone(&barrier) };
        (0..count).map(table).collect()
    }

    /// What each node of a job of so many gives, on a thread of its own.
    ///
    /// # Panics
    /// One of them has panicked.
    pub fn run<T: Send>(count: u32, run: impl Fn(&mut dyn Manager) -> T + Sync) -> Vec<T> {
        let run = &run;
        std::thread::scope(|scope| {
            let start = |mut table: Self| scope.spawn(move || run(&mut table));
            let threads: Vec<_> = Self::of(count).into_iter().map(start).collect();
            let results = threads.into_iter().map(|thread| thread.join());
            results.map(|result| result.expect("no panic")).collect()
        })
    }
}

impl Manager for Table {
    fn name(&self) -> &'static str {
        "a table"
    }

    fn place(&self) -> Place {
        self.place
    }

    fn limits(&self) -> Limits {
        Limits { key: 64, value: 80 }
    }

    fn application(&mut self) -> Result<u32, Failure> {
        Ok(0)
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        assert!(key.len() <= 64 && value.len() < 80);
        let mut values = self.values.lock().expect("no panic");
        let former = values.insert(key.to_owned(), value.to_owned());
        assert_eq!(former, None, "{key} is published twice");
        Ok(())
    }

    fn fence(&mut self) -> Result<(), Failure> {
        self.barrier.wait();
        Ok(())
    }

    fn get(&mut self, _from: u32, key: &str) -> Result<String, Failure> {
        let values = self.values.lock().expect("no panic");
        Ok(values.get(key).expect("published").clone())
    }

    fn line(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Publishes the status as `aborted`.
    fn aborter(&self) -> Option<Aborter> {
        let values = Arc::clone(&self.values);
        Some(Box::new(move |code, _reason| {
            values.lock().expect("no panic").insert("aborted".to_owned(), code.to_string());
        }))
    }

    fn finalize(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
