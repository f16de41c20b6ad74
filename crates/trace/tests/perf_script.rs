//! Text of `perf script`, of every kind that perf prints and of some that it does not.

#![allow(clippy::unwrap_used)]

mod reading;

use std::path::Path;

use mepof_address::RuntimeAddress;
use mepof_trace::input::Options;
use mepof_trace::input::perf_script::{self, NAMED, SymbolTable, parse};
use mepof_trace::{Addressing, Aggregate, Cause, Facts, Sink, Space, TraceError};
use reading::{Collected, Inputs};

fn read_into<S: Sink>(text: &str, inputs: &Inputs, mut sink: S) -> Result<(Facts, S), TraceError> {
    let facts = inputs.with(|options| {
        perf_script::parse(text.as_bytes(), Path::new("test"), options, &mut sink)
    })?;
    Ok((facts, sink))
}

fn read(text: &str) -> Result<(Facts, Collected), TraceError> {
    read_into(text, &Inputs::default(), Collected::default())
}

fn message(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

const KERNEL: &str = " swapper 0 PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x2000000) @ \
                      0xffffffff81000200]: x [kernel.kallsyms]_text\n";

#[test]
fn a_line_is_a_sample() {
    let (facts, found) = read(
        " ffffffff81000000  0x20/0x30/P/-/-/0  0x10/0x18/M/-/-/12 \n\
         \u{20}ffffffff81000004 0x40/0x50/-/-/-/0/COND/SPEC_WRONG_PATH  \n",
    )
    .unwrap();
    assert_eq!(
        found.samples,
        ["@ffffffff81000000 x1 20>30 10>18", "@ffffffff81000004 x1 40>50(wrong)"]
    );
    assert_eq!((facts.samples.used, facts.entries.used), (2, 3));
    assert_eq!(facts.samples.read(), 2);
}

#[test]
fn the_last_line_needs_no_end_and_lines_may_end_as_on_windows() {
    for text in ["0x20/0x30/P/-/-/0", "0x20/0x30/P/-/-/0\r\n", "\r\n\n 0x20/0x30/P/-/-/0 \r"] {
        let (facts, found) = read(text).unwrap();
        assert_eq!(found.samples, ["x1 20>30"], "{text:?}");
        assert_eq!(facts.samples.read(), 1);
    }
}

#[test]
fn fields_may_stand_before_the_stack_in_any_order() {
    let (facts, found) = read(
        "swapper     0 [001]  12.000001:     1000 cycles:k:  ffffffff81000000 0x20/0x30/P/-/-/0 \n\
         my prog   12/34  [001]  13.5: branches:u: 0x21/0x31/P/-/-/0 \n",
    )
    .unwrap();
    assert_eq!(found.samples, ["t12000001000 @ffffffff81000000 x1 20>30", "t13500000000 x1 21>31"]);
    let events: Vec<_> = facts.events.iter().map(|event| (&*event.name, event.samples)).collect();
    assert_eq!(events, [("cycles:k", 1), ("branches:u", 1)]);
    assert!(facts.events[0].excludes_user && facts.events[1].excludes_kernel);
}

#[test]
fn a_call_chain_stands_between_the_fields_and_the_stack() {
    let chain = "swapper 0 1.5: 1 cycles: \n\
                 \tffffffff81000000 do_idle+0x10 ([kernel.kallsyms])\n\
                 \tffffffff81000010 cpu_startup_entry+0x20 ([kernel.kallsyms])\n\
                 \u{20}0x20/0x30/P/-/-/0  0x10/0x18/P/-/-/0 \n";
    let bare = "\n\t          4005dc\n\t          400634\n 0x4005c8/0x4005dc/P/-/-/0 \n";
    let (facts, found) = read(&format!("{chain}{bare}{chain}")).unwrap();
    let first = "t1500000000 x1 20>30 10>18";
    assert_eq!(found.samples, [first, "x1 4005c8>4005dc", first]);
    assert_eq!(facts.samples.read(), 3);
}

#[test]
fn a_count_stands_for_equal_samples() {
    let (facts, found) =
        read("7\n\t4005dc\n 0x1/0x2/P/-/-/0\n3\n 4005dc 0x1/0x2/P/-/-/0\n").unwrap();
    assert_eq!(found.samples, ["x7 1>2", "@4005dc x3 1>2"]);
    assert_eq!((facts.samples.used, facts.entries.used), (10, 10));
}

#[test]
fn samples_without_branches_are_counted() {
    let (facts, found) = read(
        " ffffffff81000000 \n\
         \u{20}ffffffff81000000 0x1/0x2/P/-/-/0\n\
         \n\tffffffff81000000\n\n\
         \n\tffffffff81000000\n 0x3/0x4/P/-/-/0\n\
         swapper 0 1.5: cycles: ffffffff81000000 \n",
    )
    .unwrap();
    assert_eq!(found.samples.len(), 2);
    assert_eq!(facts.samples.dropped_for(Cause::NoBranches), 3);
    assert_eq!(facts.samples.read(), 5);
}

#[test]
fn what_cannot_be_read_is_counted_and_the_rest_is_used() {
    let good = " ffff 0x1/0x2/P/-/-/0 \n";
    for (bad, samples, entries) in [
        (" ffff 0xz/0x2/P/-/-/0 0x3/0x4/P/-/-/0\n", 1, 2),
        (" ffff 0x10000000000000000/0x2/P/-/-/0\n", 1, 1),
        (" ffff 0x1/0x2/P/-/-/0 0x3/\n", 0, 1),
        (" ffff 0x1/0x2/P/-/-/0 0x3/4/P 0x5/0x6/P/-/-/0\n", 0, 2),
        ("\0\0\0\0\n", 1, 0),
        ("0\n", 1, 0),
        ("99999999999999999999\n", 1, 0),
        ("5\n7\n", 1, 0),
        (" PERF_RECORD_MMAP -1/0: [0xf\n", 1, 0),
    ] {
        let (facts, found) = read(&format!("{good}{bad}{KERNEL}{good}")).unwrap();
        assert_eq!(
            facts.samples.dropped_for(Cause::Malformed),
            samples + u64::from(bad == "5\n7\n"),
            "{bad}"
        );
        assert_eq!(facts.entries.dropped_for(Cause::Malformed), entries, "{bad}");
        assert!(found.samples.len() >= 2, "{bad}");
    }
}

#[test]
fn huge_counts_saturate() {
    let text = format!("{}\n0x1/0x2/P/-/-/0 0x3/0x4/P/-/-/0\n", u64::MAX).repeat(3);
    let (facts, _) = read(&text).unwrap();
    assert_eq!((facts.samples.used, facts.entries.used), (u64::MAX, u64::MAX));
}

#[test]
fn mappings_say_where_the_kernel_ran() {
    let module = " x 1 PERF_RECORD_MMAP -1/0: [0xffffffffc0000000(0x1000) @ 0]: x [nf_tables]\n";
    let file = " x 1 PERF_RECORD_MMAP2 7/7: [0x7fd4efb57000(0x4000) @ 0 08:04 1 2]: r-xp /bin/x\n";
    let text = format!("{KERNEL}{module}{file}{KERNEL} 0x1/0x2/P/-/-/0\n");
    let (facts, _) = read(&text).unwrap();
    let (symbol, address) = facts.kernel_base.unwrap();
    assert_eq!((&*symbol, address.0), ("_text", 0xffff_ffff_8100_0200));
    let images: Vec<_> = facts.images.iter().map(|image| (&*image.name, image.space)).collect();
    let expected = [
        ("[kernel.kallsyms]_text", Space::Kernel),
        ("[nf_tables]", Space::Kernel),
        ("/bin/x", Space::User),
    ];
    assert_eq!(images, expected);
    assert_eq!(facts.images[0].mappings.len(), 1);
}

#[test]
fn only_events_that_were_asked_for_are_taken() {
    let text = "a 1 1.5: cycles:k: ff 0x1/0x2/P/-/-/0\na 1 1.5: branches:k: ff 0x3/0x4/P/-/-/0\n";
    let of = |event: &str| {
        let inputs = Inputs { events: vec![event.to_owned()], ..Inputs::default() };
        read_into(text, &inputs, Collected::default())
    };
    let (facts, found) = of("branches").unwrap();
    assert_eq!(found.samples.len(), 1);
    assert_eq!(facts.samples.dropped_for(Cause::OtherEvent), 1);
    let none = of("cycle").unwrap_err();
    assert!(none.to_string().contains("cycles:k"), "{none}");
}

#[test]
fn an_input_without_branches_says_what_to_do() {
    assert!(message("").contains("perf script -F ip,brstack"));
    assert!(message(KERNEL).contains("no samples"));
    assert!(message(" ffffffff81000000 \n").contains("none of its 1 samples has a branch stack"));
    let names = message(" f+0x1/g+0x2/P/-/-/0 \n");
    assert!(names.contains("brstacksym") && names.contains("-F ip,brstack"), "{names}");
    // As perf 6.1 prints `-F ip,brstackinsn`.
    let code = message(
        " ffffffff9332fca0\n\tblake2s_update+188:\n\tffffffff93221e9c\tinsn: c3 \t# PRED\n\n",
    );
    assert!(code.contains("brstackinsn") && code.contains("-F ip,brstack"), "{code}");
    let garbage = message("\u{1}\u{2}\n\u{3}\n");
    assert!(garbage.contains("at byte 0"), "{garbage}");
}

#[test]
fn too_many_distinct_branches_are_refused() {
    let line = |n: u64| format!("{:#x}/{:#x}/P/-/-/0\n", n * 16, n * 32);
    let text: String = (1..2000).map(line).collect();
    for threads in [1, 2] {
        let inputs = Inputs { max_distinct: 1000, threads, ..Inputs::default() };
        let error = read_into(&text, &inputs, Aggregate::default()).unwrap_err();
        assert!(matches!(error, TraceError::TooManyBranches { limit: 1000, .. }), "{error}");
    }
}

#[test]
fn a_reader_stops_when_it_is_told_to() {
    let inputs = Inputs { cancelled: true, ..Inputs::default() };
    let outcome = read_into("0x1/0x2/P/-/-/0", &inputs, Collected::default());
    assert!(matches!(outcome, Err(TraceError::Cancelled)));
}

/// `one` at 0x1000 and `two` at 0x2000, both of 0x100 bytes; `both` is ambiguous.
fn read_names(text: &str, threads: usize) -> Result<(Facts, Vec<String>), TraceError> {
    let mut table = SymbolTable::default();
    for (name, start) in [("one", 0x1000), ("two", 0x2000), ("both", 0x3000), ("both", 0x4000)] {
        table.add(name.as_bytes(), RuntimeAddress(start), 0x100);
    }
    let inputs = Inputs { threads, ..Inputs::default() };
    inputs.with(|options| {
        let options = Options { symbols: Some(&table), ..*options };
        let mut sink = Collected::default();
        let facts = parse(text.as_bytes(), Path::new("script"), &options, &mut sink)?;
        Ok((facts, sink.samples))
    })
}

#[test]
fn names_become_addresses_of_the_image() {
    let text = "7\n ffffffff81000000one+0x10/two+0x0/P/-/-/0/ both+0x1/[unknown]/P/-/-/0/ \
                two+0x20/one+0x8/M/-/-/0/COND/SPEC_WRONG_PATH insn: 0f 0b\n\
                one+0x1/two+0x100/P/-/-/0/ one+0x/two+0x1/P/-/-/0/ one+0x1/two+0x1/P/-/-/0/\n\
                swapper 0 1.5: 1 cycles:k:  ffffffff81000000 one\n\n\
                nobody+0x1/both+0x2/P/-/-/0/ \n\
                one+0x/two+0x1/P/-/-/0/ \n";
    let (facts, samples) = read_names(text, 1).unwrap();
    assert_eq!(samples, ["x7 1010>2000 1>1 2020>1008(wrong)", "x1 1001>1"]);
    assert_eq!(facts.addressing, Addressing::Image);
    assert_eq!(facts.format, NAMED);
    assert_eq!(facts.samples.used, 8);
    assert_eq!(facts.samples.dropped_for(Cause::Ambiguous), 1);
    assert_eq!(facts.samples.dropped_for(Cause::Malformed), 1);
    assert_eq!(facts.entries.used, 15);
    assert_eq!(facts.entries.dropped_for(Cause::Ambiguous), 8);
    assert_eq!(facts.entries.dropped_for(Cause::Malformed), 3);
    assert!(facts.notes.iter().any(|note| note.starts_with("1 locations are beyond")), "{facts:?}");
}

#[test]
fn names_and_addresses_together_are_refused() {
    let names = "one+0x1/two+0x2/P/-/-/0/ \n";
    let addresses = " 0x10/0x20/P/-/-/0/ \n";
    for text in [format!("{names}{addresses}"), format!("{addresses}{names}")] {
        let error = read_names(&text, 2).unwrap_err();
        assert!(error.to_string().contains("two files"), "{error}");
    }
    // A stack with both is one of addresses.
    let (facts, samples) =
        read_names(" 0x10/0x20/P/-/-/0/ one+0x1/two+0x2/P/-/-/0/ \n", 1).unwrap();
    assert_eq!((facts.addressing, samples), (Addressing::Runtime, vec!["x1 10>20".to_owned()]));
}

#[test]
fn names_that_tell_nothing_are_refused() {
    for line in ["nobody+0x1/[unknown]/P/-/-/0/", "both+0x1/one+0x100/P/-/-/0/"] {
        let error = read_names(&line.repeat(3), 1).unwrap_err();
        assert!(matches!(error, TraceError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("-F ip,brstack"), "{error}");
    }
}
