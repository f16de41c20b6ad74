use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::decoder::{Decoder, SampleCounts, SampleReader};
use crate::input::gathered::Gathered;
use crate::input::options::Options;
use crate::{Sink, TraceError};

/// Whole records, and how to read the samples among them.
struct Job {
    block: Arc<Vec<u8>>,
    range: Range<usize>,
    decoder: Arc<Decoder>,
}

/// Reads the samples of blocks, alone or with other threads.
pub(crate) struct Feeder<'a, S> {
    options: &'a Options<'a>,
    gathered: &'a Gathered<S>,
    reader: SampleReader,
    pub(crate) sink: &'a mut S,
    others: Option<SyncSender<Job>>,
    done: Receiver<Vec<u8>>,
    returns: Sender<Vec<u8>>,
}

impl<S: Sink> Feeder<'_, S> {
    /// Has the samples in `range` of `block`, which are whole records, read now or soon.
    pub(crate) fn submit(
        &mut self,
        block: &Arc<Vec<u8>>,
        range: Range<usize>,
        decoder: Arc<Decoder>,
    ) {
        let mut job = Job { block: Arc::clone(block), range, decoder };
        if let Some(others) = &self.others {
            match others.try_send(job) {
                Ok(()) => return,
                // The others are busy: this thread is one of those that may work.
                Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => job = back,
            }
        }
        work(job, &mut self.reader, self.sink, &self.returns);
        self.gathered.relieve(self.sink);
    }

    /// A buffer of no certain content, used before if there is one.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.done.try_recv().unwrap_or_default()
    }

    /// Takes back a block that was not submitted, or was.
    pub(crate) fn recycle(&mut self, block: Arc<Vec<u8>>) {
        if let Some(block) = Arc::into_inner(block) {
            // It only fails if the receiver is gone.
            let _ = self.returns.send(block);
        }
    }

    /// Whether reading must end.
    pub(crate) fn check(&self, path: &Path) -> Result<(), TraceError> {
        if self.options.cancelled.load(Ordering::Relaxed) {
            return Err(TraceError::Cancelled);
        }
        if self.gathered.has_too_many() {
            let limit = self.options.max_distinct;
            return Err(TraceError::TooManyBranches { path: path.to_owned(), limit });
        }
        Ok(())
    }

    pub(crate) fn counts_mut(&mut self) -> &mut SampleCounts {
        &mut self.reader.counts
    }
}

fn work<S: Sink>(job: Job, reader: &mut SampleReader, sink: &mut S, returns: &Sender<Vec<u8>>) {
    let bytes = job.block.get(job.range).unwrap_or_default();
    reader.read(&job.decoder, bytes, sink);
    if let Some(block) = Arc::into_inner(job.block) {
        let _ = returns.send(block);
    }
}

/// Runs `drive` with a feeder that uses as many threads as `options` allow, and merges what
/// they have read into `sink`.
pub(crate) fn with_feeder<S: Sink, T>(
    path: &Path,
    options: &Options<'_>,
    sink: &mut S,
    drive: impl FnOnce(&mut Feeder<'_, S>) -> Result<T, TraceError>,
) -> Result<(T, SampleCounts), TraceError> {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = if options.threads == 0 { cores() } else { options.threads };
    let gathered = Gathered::new(sink.fork(), threads, options.max_distinct);
    let (returns, done) = channel();
    let (sender, receiver) = sync_channel::<Job>(threads);
    let receiver = Mutex::new(receiver);
    let (outcome, counts) = thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|_| {
                let (mut own, returns) = (sink.fork(), returns.clone());
                let (receiver, gathered) = (&receiver, &gathered);
                scope.spawn(move || {
                    let mut reader = SampleReader::default();
                    loop {
                        let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        let Ok(job) = next else { break };
                        work(job, &mut reader, &mut own, &returns);
                        gathered.relieve(&mut own);
                    }
                    (own, reader.counts)
                })
            })
            .collect();
        let mut feeder = Feeder {
            options,
            gathered: &gathered,
            reader: SampleReader::default(),
            sink: &mut *sink,
            others: (threads > 1).then_some(sender),
            done,
            returns,
        };
        let outcome = drive(&mut feeder);
        feeder.others = None; // the others end once they have read what is waiting
        let mut counts = feeder.reader.counts;
        for other in others {
            match other.join() {
                Ok((own, theirs)) => {
                    sink.merge(own);
                    counts.merge(&theirs);
                }
                Err(bug) => std::panic::resume_unwind(bug),
            }
        }
        (outcome, counts)
    });
    let outcome = outcome?;
    sink.merge(gathered.into_inner());
    let limit = options.max_distinct;
    if sink.distinct() > limit {
        return Err(TraceError::TooManyBranches { path: path.to_owned(), limit });
    }
    Ok((outcome, counts))
}
