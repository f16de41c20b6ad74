use std::path::Path;

use crate::{Cause, Facts, Space, TraceError};

/// Why nothing can be made of the input at `path`, which gave no branch at all: by what its reader
/// says of it, and by the `space` that was asked for. Each reason has its own remedy.
pub fn unusable(path: &Path, facts: &Facts, space: Space) -> TraceError {
    let path = path.to_owned();
    let (samples, entries) = (&facts.samples, &facts.entries);
    let unread = [Cause::Lost, Cause::Truncated, Cause::Malformed];
    let unread = unread.iter().map(|&cause| samples.dropped_for(cause)).sum();
    let seen = samples.read().saturating_sub(unread);
    if seen == 0 {
        let damaged = samples.dropped_for(Cause::Malformed);
        let what = if damaged > 0 {
            format!("none of its {damaged} samples can be read: record again")
        } else if samples.dropped_for(Cause::Truncated) > 0 {
            "it is cut off before the first sample: copy it again, or record again and let \
             `perf record` end by SIGINT"
                .to_owned()
        } else {
            return TraceError::NoSamples { path };
        };
        return TraceError::Unsupported { path, what };
    }
    if !facts.events.is_empty() && !facts.events.iter().any(|event| event.branch_stack) {
        return TraceError::NoBranchStacks { path, samples: seen };
    }
    let left_out = match space {
        Space::Kernel | Space::GuestKernel => !facts.has_kernel_branches(),
        Space::User => !facts.has_user_branches(),
    };
    if left_out {
        let events: Vec<&str> = facts.events.iter().map(|event| event.name.as_str()).collect();
        return TraceError::LeftOut { path, event: events.join(", "), wanted: space };
    }
    // Entries know the system-call boundary, samples that of virtual machines too.
    let (other_side, found) = match space {
        Space::Kernel | Space::GuestKernel => (Cause::UserSpace, Space::User),
        Space::User => (Cause::OtherSpace, Space::Kernel),
    };
    if entries.dropped_for(other_side) > 0 {
        return TraceError::OtherSpace { path, wanted: space, found };
    }
    if samples.dropped_for(Cause::OtherSpace) > 0 {
        let found = if space == Space::GuestKernel { Space::Kernel } else { Space::GuestKernel };
        return TraceError::OtherSpace { path, wanted: space, found };
    }
    TraceError::NoBranchStacks { path, samples: seen }
}
