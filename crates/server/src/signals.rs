//! SIGTERM, SIGINT and the `shutdown` command end the process through one [`Stop`].

use crate::clients::lock;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A request to stop the process, which threads can wait for. Clones share it.
#[derive(Clone, Default)]
pub struct Stop(Arc<State>);

#[derive(Default)]
struct State {
    reason: Mutex<Option<String>>,
    changed: Condvar,
}

impl Stop {
    /// Returns a value without a request.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Requests the stop. The first reason is kept.
    pub fn request(&self, reason: &str) {
        lock(&self.0.reason).get_or_insert_with(|| reason.to_owned());
        self.0.changed.notify_all();
    }

    /// Returns true after a request.
    pub fn is_requested(&self) -> bool {
        lock(&self.0.reason).is_some()
    }

    /// Waits for a request, at most `limit`. Returns its reason.
    pub fn wait(&self, limit: Duration) -> Option<String> {
        let reason = lock(&self.0.reason);
        let waited = self.0.changed.wait_timeout_while(reason, limit, |reason| reason.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

/// Makes SIGTERM, SIGINT and SIGHUP request a stop, and SIGUSR1 call `rotate_log`. A second signal
/// during the stop ends the process at once, which loses no durable data. SIGXFSZ is ignored: a
/// write beyond a limit on the size of files fails like one to a full disk.
///
/// # Errors
/// The errors of the system about handlers and threads.
pub fn install(stop: &Stop, rotate_log: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGXFSZ])?;
    let stop = stop.clone();
    let thread = std::thread::Builder::new().name("signals".into()).stack_size(128 << 10);
    thread.spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGUSR1 => rotate_log(),
                SIGXFSZ => {}
                other if stop.is_requested() => std::process::exit(128 + other),
                SIGINT => stop.request("signal 2 (Interrupt)"),
                SIGHUP => stop.request("signal 1 (Hangup)"),
                _ => stop.request("signal 15 (Terminated)"),
            }
        }
    })?;
    Ok(())
}
