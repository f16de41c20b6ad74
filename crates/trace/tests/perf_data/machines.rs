//! Mappings, modules, guests.

use mepof_address::RuntimeAddress;
use mepof_trace::output::perf_data::{PerfHeader, RecordedMapping, RecordedSample};
use mepof_trace::{Cause, Space};

use crate::recordings::*;

fn module_mapping(name: &'static str) -> RecordedMapping<'static> {
    RecordedMapping {
        space: Space::Kernel,
        name,
        start: RuntimeAddress(MODULE),
        size: 0x8000,
        offset: 0,
        build_id: None,
    }
}

#[test]
fn modules_are_mapped_and_named_by_build_id() {
    let path = "/lib/modules/6.12.1-test/kernel/net/nf_tables.ko.xz";
    let mut recording = recording();
    recording.build_ids.push((Space::Kernel, path.to_owned(), build_id(0xcd)));
    let (facts, _) = read(&file(recording, |writer| {
        writer.mapping(&module_mapping("[nf_tables]")).unwrap();
        writer.mapping(&module_mapping("[nf_tables]")).unwrap();
    }));
    let module = facts.images.iter().find(|image| image.name == path).unwrap();
    assert_eq!(module.build_id, Some(build_id(0xcd)));
    assert_eq!(module.mappings.len(), 1, "the same mapping twice is one");
    assert_eq!(module.mappings[0].addresses.start, RuntimeAddress(MODULE));
    let kernel = facts.images.iter().find(|image| image.name.contains("kallsyms")).unwrap();
    assert_eq!(kernel.build_id, Some(build_id(0xab)));
    assert_eq!(kernel.name, "[kernel.kallsyms]_stext");
}

#[test]
fn a_mapping_may_carry_the_build_id() {
    let id = build_id(0x77);
    let short = mepof_address::BuildId::new(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let (facts, _) = read(&file(PerfHeader { build_ids: vec![], ..recording() }, |writer| {
        writer
            .mapping(&RecordedMapping { build_id: Some(&id), ..module_mapping("[nf_tables]") })
            .unwrap();
        writer
            .mapping(&RecordedMapping { build_id: Some(&short), ..module_mapping("[other]") })
            .unwrap();
    }));
    let id_of = |name: &str| {
        facts
            .images
            .iter()
            .find(|image| image.name == name)
            .and_then(|image| image.build_id.clone())
    };
    assert_eq!(id_of("[nf_tables]"), Some(id));
    assert_eq!(id_of("[other]"), Some(short));
}

#[test]
fn processes_are_no_binaries_of_a_kernel() {
    let (facts, _) = read(&file(recording(), |writer| {
        let process = RecordedMapping {
            space: Space::User,
            name: "/usr/bin/x",
            start: RuntimeAddress(USER),
            ..module_mapping("")
        };
        (0..1000).for_each(|_| writer.mapping(&process).unwrap());
    }));
    assert!(facts.images.iter().all(|image| image.space == Space::Kernel));
}

#[test]
fn guest_and_host_are_kept_apart() {
    const GUEST: u64 = 0xffff_ffff_8100_0000;
    let bytes = file(recording(), |writer| {
        let mapping = RecordedMapping {
            space: Space::GuestKernel,
            name: "[guest.kernel.kallsyms.1234]_text",
            start: RuntimeAddress(GUEST),
            size: 0x100_0000,
            offset: GUEST,
            build_id: None,
        };
        writer.mapping(&mapping).unwrap();
        writer.sample(&sample(&[entry(TEXT, TEXT + 8)])).unwrap();
        let stack = [entry(GUEST, GUEST + 8)];
        let guest = RecordedSample { space: Space::GuestKernel, ..sample(&stack) };
        writer.sample(&guest).unwrap();
        writer.sample(&guest).unwrap();
    });
    let (facts, aggregate) = read(&bytes);
    assert_eq!(branches(&aggregate), [(TEXT, TEXT + 8, 1)]);
    assert_eq!(facts.samples.dropped_for(Cause::OtherSpace), 2);
    assert_eq!(facts.kernel_base, Some(("_stext".to_owned(), RuntimeAddress(TEXT))));

    let settings = Settings { space: Space::GuestKernel, ..Settings::default() };
    let (facts, aggregate) = read_with(&bytes, &settings).unwrap();
    assert_eq!(branches(&aggregate), [(GUEST, GUEST + 8, 2)]);
    assert_eq!(facts.samples.dropped_for(Cause::OtherSpace), 1);
    assert_eq!(facts.kernel_base, Some(("_text".to_owned(), RuntimeAddress(GUEST))));
}

#[test]
fn only_guest_samples_is_told() {
    let (facts, _) = read(&file(recording(), |writer| {
        let stack = [entry(TEXT, TEXT + 8)];
        writer.sample(&RecordedSample { space: Space::GuestKernel, ..sample(&stack) }).unwrap();
    }));
    assert!(has_note(&facts, &["all samples are of guests"]), "{:?}", facts.notes);
}

#[test]
fn a_missing_kernel_mapping_is_told() {
    let writer = mepof_trace::output::perf_data::Writer::pipe(
        Vec::new(),
        recording(),
        mepof_trace::output::perf_data::Compression::None,
    );
    let mut writer = writer.unwrap();
    writer.sample(&sample(&[entry(TEXT, TEXT + 8)])).unwrap();
    let (facts, _) = read(&writer.finish().unwrap());
    assert_eq!(facts.kernel_base, None);
    assert!(has_note(&facts, &["kptr_restrict", "kallsyms"]), "{:?}", facts.notes);
}

#[test]
fn code_that_comes_and_goes_is_told() {
    let (facts, _) = read(&file(recording(), |writer| {
        writer.record(17, 1, &[0; 32]).unwrap(); // PERF_RECORD_KSYMBOL
    }));
    assert!(has_note(&facts, &["BPF"]), "{:?}", facts.notes);
}
