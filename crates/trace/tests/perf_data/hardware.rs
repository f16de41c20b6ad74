//! What each kind of hardware does differently.

use mepof_address::RuntimeAddress;
use mepof_machine::Machine;
use mepof_trace::output::perf_data::PerfHeader;
use mepof_trace::{BranchEntry, BranchKind, Cause, Space, Speculation};

use crate::recordings::*;

#[test]
fn an_intel_lbr_gives_branches_and_the_ranges_between_them() {
    let stack = [
        entry(TEXT + 0x30, TEXT + 0x50),
        entry(TEXT + 0x20, TEXT + 0x28),
        entry(TEXT + 0x10, TEXT + 0x18),
    ];
    let (facts, aggregate) = read(&file(recording(), |writer| {
        (0..3).for_each(|_| writer.sample(&sample(&stack)).unwrap());
    }));
    let expected = [
        (TEXT + 0x10, TEXT + 0x18, 3),
        (TEXT + 0x20, TEXT + 0x28, 3),
        (TEXT + 0x30, TEXT + 0x50, 3),
    ];
    assert_eq!(branches(&aggregate), expected);
    let expected = [(TEXT + 0x18, TEXT + 0x20, 3), (TEXT + 0x28, TEXT + 0x30, 3)];
    assert_eq!(ranges(&aggregate), expected);
    assert_eq!((facts.samples.used, facts.samples.read()), (3, 3));
    assert_eq!((facts.entries.used, facts.entries.read()), (9, 9));
    assert_eq!(facts.format, "perf.data");
    assert_eq!(facts.machine, Some(Machine::X86_64));
    assert_eq!(facts.kernel_release.as_deref(), Some("6.12.1-test"));
    assert_eq!(facts.kernel_base, Some(("_stext".to_owned(), RuntimeAddress(TEXT))));
    assert!(facts.has_kernel_branches());
    assert_eq!(facts.events[0].name, "cycles:k");
    assert_eq!(facts.events[0].samples, 3);
    assert_eq!(facts.events[0].period, Some(1_000_003));
    assert!(has_note(&facts, &["Intel's LBR", "32 deep"]), "{:?}", facts.notes);
}

#[test]
fn wrong_paths_of_lbr_ext_v2_are_left_out_and_counted() {
    let stack = [
        entry(TEXT + 0x30, TEXT + 0x50),
        wrong_path(TEXT + 0x2c, TEXT + 0x900),
        BranchEntry { speculation: Speculation::Correct, ..entry(TEXT + 0x20, TEXT + 0x28) },
    ];
    let zen4 = PerfHeader { cpu_id: "AuthenticAMD,25,17,1".to_owned(), ..recording() };
    let zen4 = PerfHeader { branch_depth: Some(16), ..zen4 };
    let (facts, aggregate) = read(&file(zen4, |writer| writer.sample(&sample(&stack)).unwrap()));
    assert_eq!(branches(&aggregate).len(), 2);
    assert_eq!(ranges(&aggregate), [(TEXT + 0x28, TEXT + 0x30, 1)]);
    assert_eq!(aggregate.entries().dropped_for(Cause::WrongPath), 1);
    assert!(has_note(&facts, &["LbrExtV2", "16 deep"]), "{:?}", facts.notes);
    assert!(has_note(&facts, &["1 of 3 entries were speculative"]), "{:?}", facts.notes);
}

#[test]
fn poisoned_slots_of_amd_brs_are_gaps() {
    let poisoned = entry(TEXT + 0x2c, 0xffff_ffff_ffff_fffe);
    let bare = |from, to| BranchEntry { mispredicted: None, ..entry(from, to) };
    let stack = [bare(TEXT + 0x30, TEXT + 0x50), poisoned, bare(TEXT + 0x20, TEXT + 0x28)];
    let zen3 = PerfHeader { cpu_id: "AuthenticAMD,25,33,0".to_owned(), ..recording() };
    let (facts, aggregate) = read(&file(zen3, |writer| writer.sample(&sample(&stack)).unwrap()));
    assert_eq!(branches(&aggregate).len(), 2);
    assert_eq!(ranges(&aggregate), []);
    assert_eq!(aggregate.entries().dropped_for(Cause::EmptyEntry), 1);
    assert!(has_note(&facts, &["AMD's BRS", "fused"]), "{:?}", facts.notes);
    assert!(has_note(&facts, &["1 of 3 entries are empty"]), "{:?}", facts.notes);
}

#[test]
fn brbe_knows_exceptions_and_gives_half_of_an_entry_where_recording_was_prohibited() {
    let kind = |kind, entry| BranchEntry { kind, ..entry };
    let stack = [
        kind(BranchKind::Entry, entry(TEXT + 0x30, TEXT + 0x800)),
        kind(BranchKind::Exit, entry(0, TEXT + 0x28)),
        kind(BranchKind::Call, entry(TEXT + 0x10, TEXT + 0x18)),
    ];
    let brbe = PerfHeader {
        machine: Some(Machine::AARCH64),
        cpu_id: "0x00000000410fd8e0".to_owned(),
        branch_depth: Some(64),
        ..recording()
    };
    let (facts, aggregate) = read(&file(brbe, |writer| writer.sample(&sample(&stack)).unwrap()));
    assert_eq!(branches(&aggregate).len(), 2);
    assert_eq!(ranges(&aggregate), [], "what ran around the half entry is not known");
    assert_eq!(aggregate.entries().dropped_for(Cause::EmptyEntry), 1);
    assert!(has_note(&facts, &["Arm's BRBE", "64 deep"]), "{:?}", facts.notes);
}

#[test]
fn a_system_call_is_seen_from_the_kernel_and_the_process_is_not() {
    let stack = [
        entry(USER + 0x20, TEXT),        // the system call
        entry(USER + 0x10, USER + 0x18), // in the process
        entry(TEXT + 0x90, USER + 0x8),  // back from the one before
        entry(TEXT + 0x40, TEXT + 0x80),
    ];
    let (facts, aggregate) =
        read(&file(recording(), |writer| writer.sample(&sample(&stack)).unwrap()));
    let expected = [(1, TEXT, 1), (TEXT + 0x40, TEXT + 0x80, 1), (TEXT + 0x90, 1, 1)];
    assert_eq!(branches(&aggregate), expected);
    assert_eq!(ranges(&aggregate), [(1, 1, 1), (TEXT + 0x80, TEXT + 0x90, 1)]);
    assert_eq!(facts.entries.dropped_for(Cause::UserSpace), 1);
}

#[test]
fn a_sample_of_user_code_counts_if_its_stack_knows_the_kernel() {
    let with_kernel = [entry(USER, USER + 4), entry(TEXT + 0x40, TEXT + 0x80)];
    let without = [entry(USER, USER + 4)];
    let bytes = file(recording(), |writer| {
        for stack in [&with_kernel[..], &without[..]] {
            let taken = mepof_trace::output::perf_data::RecordedSample {
                space: Space::User,
                ..sample(stack)
            };
            writer.sample(&taken).unwrap();
        }
    });
    let (facts, aggregate) = read(&bytes);
    assert_eq!(branches(&aggregate), [(TEXT + 0x40, TEXT + 0x80, 1)]);
    assert_eq!((facts.samples.used, facts.samples.dropped_for(Cause::UserSpace)), (1, 1));

    let (facts, aggregate) =
        read_with(&bytes, &Settings { space: Space::User, ..Settings::default() }).unwrap();
    assert_eq!(branches(&aggregate), [(USER, USER + 4, 2)]);
    assert_eq!(facts.entries.dropped_for(Cause::OtherSpace), 1);
}
