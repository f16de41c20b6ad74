//! Reads bytes with the options of a test, and shows what came out.

use std::sync::atomic::{AtomicBool, AtomicU64};

use mepof_address::RuntimeAddress;
use mepof_trace::input::Options;
use mepof_trace::{Sample, Sink, Space, Speculation};

/// What a sink was given, as text, in order.
#[derive(Debug, Default)]
pub struct Collected {
    pub samples: Vec<String>,
}

impl Sink for Collected {
    fn sample(&mut self, sample: &Sample<'_>) {
        let mut text = String::new();
        if let Some(time) = sample.time {
            text += &format!("t{time} ");
        }
        if let Some(address) = sample.address {
            text += &format!("@{:x} ", address.0);
        }
        text += &format!("x{}", sample.count);
        for entry in sample.branches {
            let wrong = entry.speculation == Speculation::WrongPath;
            text += &format!(" {:x}>{:x}", entry.from.0, entry.to.0);
            text += if wrong { "(wrong)" } else { "" };
        }
        self.samples.push(text);
    }

    fn branch(&mut self, from: RuntimeAddress, to: RuntimeAddress, count: u64) {
        self.samples.push(format!("{:x}>{:x} x{count}", from.0, to.0));
    }

    fn range(&mut self, first: RuntimeAddress, last: RuntimeAddress, count: u64) {
        self.samples.push(format!("{:x}..{:x} x{count}", first.0, last.0));
    }

    fn fork(&self) -> Self {
        Self::default()
    }

    fn merge(&mut self, other: Self) {
        self.samples.extend(other.samples);
    }
}

/// Options that own what they refer to.
pub struct Inputs {
    pub events: Vec<String>,
    pub max_distinct: usize,
    pub threads: usize,
    pub cancelled: bool,
}

impl Default for Inputs {
    fn default() -> Self {
        Self { events: Vec::new(), max_distinct: 1 << 20, threads: 1, cancelled: false }
    }
}

impl Inputs {
    pub fn with<R>(&self, run: impl FnOnce(&Options<'_>) -> R) -> R {
        let (cancelled, progress) = (AtomicBool::new(self.cancelled), AtomicU64::new(0));
        run(&Options {
            space: Space::Kernel,
            events: &self.events,
            max_distinct: self.max_distinct,
            symbols: None,
            binary: None,
            threads: self.threads,
            cancelled: &cancelled,
            progress: &progress,
        })
    }
}
