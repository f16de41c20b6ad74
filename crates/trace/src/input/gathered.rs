use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Sink;

/// What several threads have read, with one bound for all of them.
///
/// Each thread holds a share of the distinct branches that are allowed, and empties its sink into
/// the one that they have in common when it has more. So at most twice as many are held as are
/// allowed, and whether there are too many does not depend on which thread read what.
#[derive(Debug)]
pub(super) struct Gathered<S> {
    all: Mutex<S>,
    limit: usize,
    share: usize,
    too_many: AtomicBool,
}

impl<S: Sink> Gathered<S> {
    /// For `threads` threads; `empty` takes what they have. See
    /// [`Options::max_distinct`](super::Options::max_distinct) for `limit`.
    pub(super) fn new(empty: S, threads: usize, limit: usize) -> Self {
        let share = limit / threads.max(1);
        Self { all: Mutex::new(empty), limit, share, too_many: AtomicBool::new(false) }
    }

    /// Empties `own` if it has more than its share.
    pub(super) fn relieve(&self, own: &mut S) {
        if own.distinct() <= self.share {
            return;
        }
        let empty = own.fork();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.merge(std::mem::replace(own, empty));
        if all.distinct() > self.limit {
            self.too_many.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it is known already that there are more distinct branches than allowed.
    pub(super) fn has_too_many(&self) -> bool {
        self.too_many.load(Ordering::Relaxed)
    }

    /// What the threads emptied; the rest is in their own sinks.
    pub(super) fn into_inner(self) -> S {
        self.all.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use mepof_address::RuntimeAddress;

    use super::*;
    use crate::Aggregate;

    const THREADS: usize = 8;
    const LIMIT: usize = 800;

    /// The threads' sinks after each saw `of_each` branches, and what they have in common. The
    /// branches of one thread begin `apart` after those of the one before.
    fn read(of_each: u64, apart: u64) -> (Vec<Aggregate>, Gathered<Aggregate>) {
        let gathered = Gathered::new(Aggregate::default(), THREADS, LIMIT);
        let mut sinks = vec![Aggregate::default(); THREADS];
        for number in 0..of_each {
            for (thread, sink) in sinks.iter_mut().enumerate() {
                let at = RuntimeAddress(1 + apart * thread as u64 + number);
                sink.branch(at, at, 1);
                gathered.relieve(sink);
            }
        }
        (sinks, gathered)
    }

    #[test]
    fn the_bound_holds_for_all_threads_together() {
        let (sinks, gathered) = read(300, 1000);
        assert!(gathered.has_too_many());
        assert!(sinks.iter().all(|sink| sink.distinct() <= LIMIT / THREADS));
    }

    #[test]
    fn branches_that_all_threads_saw_count_once() {
        let (sinks, gathered) = read(700, 0);
        assert!(!gathered.has_too_many());
        let mut all = gathered.into_inner();
        sinks.into_iter().for_each(|sink| all.merge(sink));
        assert_eq!(all.distinct(), 700);
        assert_eq!(all.entries().used, 700 * THREADS as u64);
    }
}
