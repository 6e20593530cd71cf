//! A place for one value that two tasks use in turn. In a loom model its uses are checked.

use core::mem::MaybeUninit;

#[cfg(not(loom))]
use core::cell::UnsafeCell;
#[cfg(loom)]
use loom::cell::UnsafeCell;

/// Room for a value. Who may use it when is the owner's protocol.
#[derive(Debug)]
pub(crate) struct ValueCell<T>(UnsafeCell<MaybeUninit<T>>);

impl<T: Copy> ValueCell<T> {
    /// Room without a value.
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Puts a value in.
    ///
    /// # Safety
    /// No other task uses the place meanwhile.
    #[cfg(not(loom))]
    pub(crate) unsafe fn write(&self, value: T) {
        // SAFETY: the caller's promise.
        unsafe { (*self.0.get()).write(value) };
    }

    /// Puts a value in.
    ///
    /// # Safety
    /// No other task uses the place meanwhile, which the model checks.
    #[cfg(loom)]
    pub(crate) unsafe fn write(&self, value: T) {
        // SAFETY: the caller's promise.
        self.0.with_mut(|place| unsafe { (*place).write(value) });
    }

    /// The value that was put in last.
    ///
    /// # Safety
    /// There is one, and no other task writes meanwhile.
    #[cfg(not(loom))]
    pub(crate) unsafe fn read(&self) -> T {
        // SAFETY: the caller's promise.
        unsafe { (*self.0.get()).assume_init() }
    }

    /// The value that was put in last.
    ///
    /// # Safety
    /// There is one, and no other task writes meanwhile, which the model checks.
    #[cfg(loom)]
    pub(crate) unsafe fn read(&self) -> T {
        // SAFETY: the caller's promise.
        self.0.with(|place| unsafe { (*place).assume_init() })
    }
}
