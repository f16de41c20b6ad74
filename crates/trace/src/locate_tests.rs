#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

const TEXT: u64 = 0xffff_ffff_9a00_0000;
const LINKED: u64 = 0xffff_ffff_8100_0000;
const MODULE: u64 = 0xffff_ffff_c0a0_0000;

fn id(byte: u8) -> BuildId {
    BuildId::new(&[byte; 20]).unwrap()
}

fn image(name: &str, start: u64, offset: u64) -> TracedImage {
    let addresses = RuntimeAddress(start)..RuntimeAddress(start + 0x10_0000);
    let mappings = vec![Mapping { addresses, offset, section: None }];
    TracedImage { name: name.to_owned(), space: Space::Kernel, build_id: None, mappings }
}

fn facts(images: Vec<TracedImage>) -> Facts {
    Facts { images, ..Facts::default() }
}

fn section(name: &str, start: u64, size: u64) -> CodeSection {
    let addresses = ImageAddress(start)..ImageAddress(start + size);
    CodeSection { name: name.to_owned(), addresses, file_offset: start + 0x40 }
}

fn vmlinux() -> BinaryFacts<'static> {
    BinaryFacts {
        kind: BinaryKind::Kernel {
            text: Some(ImageAddress(LINKED)),
            stext: Some(ImageAddress(LINKED + 0x100)),
        },
        build_id: None,
        sections: vec![
            section(".text", LINKED, 0x8000),
            section(".init.text", LINKED + 0xa000, 0x1000),
        ],
        segment: Some(ImageAddress(LINKED)),
    }
}

/// Of `.text`, `.exit.text` and `.text.unlikely`.
fn loaded() -> Vec<(u64, Range<ImageAddress>)> {
    let at = |offset, start, end| (offset, ImageAddress(start)..ImageAddress(end));
    vec![at(0, 0x1000, 0x1333), at(0x340, 0x1440, 0x1460), at(0x360, 0x1460, 0x1471)]
}

fn ko() -> BinaryFacts<'static> {
    BinaryFacts {
        kind: BinaryKind::Module { name: "nf_tables".to_owned(), code: Some(loaded()) },
        build_id: None,
        sections: vec![
            section(".text", 0x1000, 0x333),
            section(".init.text", 0x1340, 0x100),
            section(".exit.text", 0x1440, 0x20),
            section(".text.unlikely", 0x1460, 0x11),
        ],
        segment: None,
    }
}

fn find(facts: &Facts, binary: &BinaryFacts<'_>) -> Result<Located, LocateError> {
    locate(facts, Space::Kernel, binary, &Hints::default())
}

fn placed(located: &Located, address: u64) -> Option<u64> {
    located.placement.to_image(RuntimeAddress(address)).map(|address| address.0)
}

#[test]
fn a_kernel_moves_as_a_whole_by_the_symbol_that_the_recording_names() {
    for (name, offset) in
        [("[kernel.kallsyms]_text", TEXT), ("[kernel.kallsyms]_stext", TEXT + 0x100)]
    {
        let located = find(&facts(vec![image(name, TEXT, offset)]), &vmlinux()).unwrap();
        assert_eq!(placed(&located, TEXT + 0x123), Some(LINKED + 0x123), "{name}");
        assert_eq!(placed(&located, TEXT + 0xa004), Some(LINKED + 0xa004), "{name}");
        assert_eq!(placed(&located, TEXT + 0x9000), None, "between sections");
        assert!(!located.is_confirmed);
    }
}

#[test]
fn build_ids_confirm_or_refute() {
    let recorded =
        TracedImage { build_id: Some(id(1)), ..image("[kernel.kallsyms]_text", TEXT, TEXT) };
    let facts = facts(vec![recorded]);
    let (same, other) = (id(1), id(2));
    let binary = BinaryFacts { build_id: Some(&same), ..vmlinux() };
    assert!(find(&facts, &binary).unwrap().is_confirmed);
    let binary = BinaryFacts { build_id: Some(&other), ..vmlinux() };
    let error = find(&facts, &binary).unwrap_err().to_string();
    assert!(error.contains(&id(1).to_string()) && error.contains(&id(2).to_string()), "{error}");
    let hints = Hints { any_build_id: true, ..Hints::default() };
    assert!(!locate(&facts, Space::Kernel, &binary, &hints).unwrap().is_confirmed);
}

#[test]
fn what_the_recording_lacks_may_be_given() {
    let nothing = facts(vec![]);
    assert_eq!(find(&nothing, &vmlinux()), Err(LocateError::NoKernelMapping));
    let said = LocateError::NoKernelMapping.to_string();
    assert!(said.contains("--show-mmap-events") && said.contains("(--kallsyms)"), "{said}");
    // perf under kptr_restrict: a mapping without an address.
    let hidden = facts(vec![image("[kernel.kallsyms]_text", 0, 0)]);
    assert_eq!(find(&hidden, &vmlinux()), Err(LocateError::NoKernelMapping));
    let given =
        Hints { kernel_base: Some(("_stext", RuntimeAddress(TEXT + 0x100))), ..Hints::default() };
    let text = format!("0000000000000000 A fixed_percpu_data\n{:x} T _stext\n", TEXT + 0x100);
    let listed = Hints { kallsyms: Some(&text), ..Hints::default() };
    for hints in [given, listed] {
        let located = locate(&hidden, Space::Kernel, &vmlinux(), &hints).unwrap();
        assert_eq!(placed(&located, TEXT), Some(LINKED));
    }
    let zeros = Hints { kallsyms: Some("0000000000000000 T _text\n"), ..Hints::default() };
    let outcome = locate(&nothing, Space::Kernel, &vmlinux(), &zeros);
    assert_eq!(outcome, Err(LocateError::HiddenAddresses));
    let odd = Hints { kernel_base: Some(("_etext", RuntimeAddress(TEXT))), ..Hints::default() };
    let outcome = locate(&nothing, Space::Kernel, &vmlinux(), &odd);
    assert_eq!(outcome, Err(LocateError::NoSymbol("_etext".to_owned())));
}

#[test]
fn a_kernel_without_symbols_is_not_taken_for_a_program() {
    let kind = BinaryKind::Program("vmlinux".to_owned());
    let stripped = BinaryFacts { kind, ..vmlinux() };
    let facts = facts(vec![image("[kernel.kallsyms]_text", TEXT, TEXT)]);
    assert_eq!(find(&facts, &stripped), Err(LocateError::NoSymbols { name: "vmlinux".to_owned() }));
    let error = locate(&facts, Space::User, &stripped, &Hints::default()).unwrap_err();
    let end = "it has no such binary; text says it if it was printed with `perf script \
               --show-mmap-events`";
    assert!(error.to_string().ends_with(end), "{error}");
}

#[test]
fn several_kernels_are_told_apart_by_build_id_or_not_at_all() {
    let guest = |name: &str, base: u64, byte: u8| TracedImage {
        space: Space::GuestKernel,
        build_id: Some(id(byte)),
        ..image(name, base, base)
    };
    let facts = facts(vec![
        guest("[guest.kernel.kallsyms.1]_text", TEXT, 1),
        guest("[guest.kernel.kallsyms.2]_text", TEXT + 0x100_0000, 2),
    ]);
    let second = id(2);
    let binary = BinaryFacts { build_id: Some(&second), ..vmlinux() };
    let located = locate(&facts, Space::GuestKernel, &binary, &Hints::default()).unwrap();
    assert_eq!(placed(&located, TEXT + 0x100_0000), Some(LINKED));
    let error = locate(&facts, Space::GuestKernel, &vmlinux(), &Hints::default()).unwrap_err();
    assert!(matches!(error, LocateError::SeveralKernels(_)), "{error}");
    let error = locate(&facts, Space::Kernel, &vmlinux(), &Hints::default()).unwrap_err();
    assert!(error.to_string().ends_with("use a guest's kernel (--space guest)"), "{error}");
}

#[test]
fn a_modules_code_is_where_the_kernel_loads_it() {
    for name in ["[nf_tables]", "/lib/modules/6.12/kernel/net/nf-tables.ko.zst"] {
        let located = find(&facts(vec![image(name, MODULE, 0)]), &ko()).unwrap();
        assert_eq!(placed(&located, MODULE + 0x332), Some(0x1332));
        assert_eq!(placed(&located, MODULE + 0x333), None);
        // .init.text has gone.
        assert_eq!(placed(&located, MODULE + 0x33f), None);
        assert_eq!(placed(&located, MODULE + 0x340), Some(0x1440));
        assert_eq!(placed(&located, MODULE + 0x360), Some(0x1460));
    }
}

#[test]
fn a_mapping_of_a_modules_file_from_an_offset_on_is_of_what_is_there() {
    let at = |start: u64, offset: u64, size: u64| Mapping {
        addresses: RuntimeAddress(start)..RuntimeAddress(start + size),
        offset,
        section: None,
    };
    // A mapping for each section, as mepof writes a perf.data.
    let mappings = vec![at(MODULE, 0x1040, 0x333), at(MODULE + 0x5000, 0x14a0, 0x11)];
    let module = TracedImage { mappings, ..image("/lib/modules/6.12/nf-tables.ko", 0, 0) };
    let located = find(&facts(vec![module]), &ko()).unwrap();
    assert_eq!(placed(&located, MODULE + 0x332), Some(0x1332));
    assert_eq!(placed(&located, MODULE + 0x340), None, "no mapping has .exit.text");
    assert_eq!(placed(&located, MODULE + 0x5004), Some(0x1464));
    assert_eq!(placed(&located, MODULE + 0x5011), None);
}

#[test]
fn given_sections_go_where_they_were() {
    let sections = [
        (".text".to_owned(), RuntimeAddress(MODULE)),
        (".init.text".to_owned(), RuntimeAddress(MODULE + 0x10_0000)),
    ];
    let hints = Hints { module_sections: &sections, ..Hints::default() };
    let located = locate(&facts(vec![]), Space::Kernel, &ko(), &hints).unwrap();
    assert_eq!(placed(&located, MODULE + 0x10_0004), Some(0x1344));
    assert_eq!(placed(&located, MODULE + 0x340), None);
}

#[test]
fn a_module_that_was_not_loaded_is_an_error_that_says_what_was() {
    let error = find(&facts(vec![image("[ext4]", MODULE, 0)]), &ko()).unwrap_err().to_string();
    assert!(error.contains("nf_tables") && error.contains("ext4"), "{error}");
}

#[test]
fn addresses_that_another_module_had_as_well_are_not_placed() {
    let other = |start| facts(vec![image("[nf_tables]", MODULE, 0), image("[ext4]", start, 0)]);
    let located = find(&other(MODULE + 0x200), &ko()).unwrap();
    assert_eq!(placed(&located, MODULE + 0x1ff), Some(0x11ff));
    assert_eq!(placed(&located, MODULE + 0x200), None);
    let shared = RuntimeAddress(MODULE + 0x200)..RuntimeAddress(MODULE + 0x333);
    assert_eq!(located.shared, [shared]);
    assert_eq!(find(&other(MODULE + 0x1000), &ko()).unwrap().shared, []);
}

#[test]
fn a_program_is_placed_by_its_offsets_in_the_file() {
    let mut program = image("/usr/bin/x", 0x5555_0000_1000, 0x1000);
    program.space = Space::User;
    let binary = BinaryFacts {
        kind: BinaryKind::Program("build/x".to_owned()),
        sections: vec![section(".text", 0x2000, 0x100)],
        ..ko()
    };
    let located = locate(&facts(vec![program]), Space::User, &binary, &Hints::default()).unwrap();
    assert_eq!(placed(&located, 0x5555_0000_2040), Some(0x2000));
}

#[test]
fn addresses_of_the_image_stay_and_offsets_count_from_the_segment() {
    let image = Facts { addressing: Addressing::Image, ..Facts::default() };
    assert_eq!(placed(&find(&image, &vmlinux()).unwrap(), LINKED + 5), Some(LINKED + 5));
    let either = |lowest, highest| Facts {
        addressing: Addressing::ImageOrTextOffset { lowest, highest },
        ..Facts::default()
    };
    let offsets = find(&either(5, 0x100), &vmlinux()).unwrap();
    assert_eq!(placed(&offsets, 5), Some(LINKED + 5));
    // A 32-bit kernel: neither its top bit nor that of 64 tells.
    let low = |linked: u64| BinaryFacts {
        sections: vec![section(".text", linked, 0x8000)],
        segment: Some(ImageAddress(linked)),
        ..vmlinux()
    };
    let kernel = low(0xc010_8000);
    let linked = find(&either(0xc010_8004, 0xc010_9000), &kernel).unwrap();
    assert_eq!(placed(&linked, 0xc010_8004), Some(0xc010_8004));
    // What is of modules there does not matter.
    for (lowest, highest) in [(0xbf00_0000, 0xc010_9000), (0xbf00_0000, 0xc800_0000)] {
        let linked = find(&either(lowest, highest), &kernel).unwrap();
        assert_eq!(placed(&linked, 0xc010_8004), Some(0xc010_8004));
    }
    for highest in [0x1000, 0x700_0000] {
        let offsets = find(&either(4, highest), &kernel).unwrap();
        assert_eq!(placed(&offsets, 4), Some(0xc010_8004));
    }
    // Where both are possible, they are offsets, as llvm-profgen writes them by default.
    assert_eq!(placed(&find(&either(0x1200, 0x1300), &low(0x1000)).unwrap(), 0), Some(0x1000));
    assert_eq!(placed(&find(&either(0x1200, 0x8800), &low(0x1000)).unwrap(), 0), None);
    // A module has no segment.
    let module = find(&either(0x1000, 0x1300), &ko()).unwrap();
    assert_eq!(placed(&module, 0x1004), Some(0x1004));
}
