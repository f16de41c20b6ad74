//! Long work beside a Python interpreter that goes on listening.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often the interpreter is asked whether the user wants to stop.
const TICK: Duration = Duration::from_millis(100);

/// The main thread of a program has this much; inline stacks are walked recursively.
const STACK_BYTES: usize = 8 << 20;

/// Runs `work` on its own thread, without the interpreter's lock, and gives what it returns.
///
/// The flag tells `work` to stop. `work` stores its progress in the number, which goes to
/// `on_progress` several times a second.
///
/// # Errors
/// What a signal handler or `on_progress` raised (`KeyboardInterrupt` as a rule), once the work
/// has stopped; `RuntimeError` for a panic, which is a bug.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    on_progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&AtomicBool, &AtomicU64) -> T + Send,
) -> PyResult<T> {
    let (cancelled, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    let (finished, finish) = channel::<()>();
    let (cancelled, progress) = (&cancelled, &progress);
    thread::scope(|scope| {
        let worker =
            thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || {
                let _finished = finished; // dropped at the end, however it comes
                work(cancelled, progress)
            })?;
        let mut stopped = Ok(());
        // The receiver is not `Sync`, and the closure that waits has to be `Send`.
        let mut finish = Some(finish);
        while let Some(waiting) = finish.take() {
            if stopped.is_ok() {
                stopped = py.check_signals().and_then(|()| match on_progress {
                    Some(tell) => tell.call1((progress.load(Ordering::Relaxed),)).map(drop),
                    None => Ok(()),
                });
                cancelled.store(stopped.is_err(), Ordering::Relaxed);
            }
            finish = py.detach(move || match waiting.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) | Ok(()) => Some(waiting),
                Err(RecvTimeoutError::Disconnected) => None,
            });
        }
        let outcome = worker.join();
        stopped?;
        outcome.map_err(|panic| PyRuntimeError::new_err(panic_message(panic.as_ref())))
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    format!("the profile engine panicked: {text}")
}
