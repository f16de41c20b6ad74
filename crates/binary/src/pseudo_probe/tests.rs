use super::*;

/// Writes a section the way LLVM does.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    /// A function with `probes` probes and `calls` inlined calls, which follow.
    fn function(self, name: &str, probes: u8, calls: u8) -> Self {
        self.number(guid(name.as_bytes())).bytes(&[probes, calls])
    }

    /// A probe `distance` bytes after the one before, -64 to 63.
    fn probe(self, index: u8, kind: u8, distance: i8) -> Self {
        self.bytes(&[index, 0x80 | kind, distance as u8 & 0x7f])
    }

    fn sentinel(self, part: &str) -> Self {
        self.bytes(&[0, 0x20]).number(guid(part.as_bytes()))
    }
}

fn parse(data: &[u8], symbols: &[(&str, u64)]) -> Result<Probes, Damage> {
    let sections = [ProbeSection { data, code: None }];
    let symbols = symbols.iter().map(|&(name, address)| (name.as_bytes(), ImageAddress(address)));
    Probes::parse(&sections, symbols, true)
}

fn positions(probes: &Probes) -> Vec<(u64, u32)> {
    probes.probes.iter().map(|probe| (probe.address.0, probe.index)).collect()
}

/// `f`, with `g` inlined at probe 2 and `h` into that at probe 3, and the cold part of `f`.
fn example() -> Vec<u8> {
    Writer::default()
        .function("f", 2, 1)
        .probe(1, 0, 0)
        .probe(2, 2, 16)
        .bytes(&[2])
        .function("g", 1, 1)
        .probe(3, 1, -4)
        .bytes(&[3])
        .function("h", 1, 0)
        .bytes(&[1, 0x80 | 0x40, 8, 5])
        .function("f", 2, 0)
        .sentinel("f.cold")
        .probe(4, 0, 3)
        .0
}

const SYMBOLS: [(&str, u64); 2] = [("f", 0x1000), ("f.cold", 0x9000)];

#[test]
fn distances_run_through_the_whole_tree() {
    let probes = parse(&example(), &SYMBOLS).expect("probes");
    assert_eq!(
        positions(&probes),
        [(0x1000, 1), (0x100c, 3), (0x1010, 2), (0x1014, 1), (0x9003, 4)]
    );
    let [first, indirect, direct, inlined, cold] = &probes.probes[..] else { panic!() };
    let [f, g, h] = ["f", "g", "h"].map(|name| guid(name.as_bytes()));
    assert_eq!(first.kind, ProbeKind::Block);
    assert_eq!(indirect.kind, ProbeKind::IndirectCall);
    assert_eq!(direct.kind, ProbeKind::DirectCall);
    assert_eq!((inlined.guid, &*inlined.inlined_at), (h, &[(f, 2), (g, 3)][..]));
    assert_eq!((inlined.attributes, inlined.discriminator), (4, 5));
    assert_eq!((indirect.guid, &*indirect.inlined_at), (g, &[(f, 2)][..]));
    assert_eq!((cold.guid, cold.inlined_at.len()), (f, 0));
    assert_eq!(probes.unlocated, 0);
}

#[test]
fn a_guid_is_what_llvm_makes_of_a_name() {
    assert_eq!(guid(b"main"), 15_822_663_052_811_949_562);
}

#[test]
fn probes_of_a_function_without_a_symbol_are_counted_and_left_out() {
    let probes = parse(&example(), &SYMBOLS[..1]).expect("probes");
    assert_eq!((probes.probes.len(), probes.unlocated), (4, 1));
}

#[test]
fn functions_of_the_same_name_are_told_apart_by_their_order() {
    let one = |index| Writer::default().function("twin", 1, 0).probe(index, 0, 0).0;
    let data = [one(1), one(2)].concat();
    let both = [("twin", 0x2000), ("twin", 0x1000), ("twin", 0x1000)];
    assert_eq!(positions(&parse(&data, &both).expect("probes")), [(0x1000, 1), (0x2000, 2)]);
    let three = [("twin", 0x2000), ("twin", 0x1000), ("twin", 0x3000)];
    let unclear = parse(&data, &three).expect("probes");
    assert_eq!((unclear.probes.len(), unclear.unlocated), (0, 2));
}

#[test]
fn several_trees_may_belong_to_one_piece_of_code() {
    let mut names = ["f", "g", "h"];
    names.sort_by_key(|name| guid(name.as_bytes()));
    let tree = |name| Writer::default().function(name, 2, 0).sentinel("f.cold").probe(1, 0, 1).0;
    let data = names.map(tree).concat();
    let probes = parse(&data, &SYMBOLS).expect("probes");
    assert_eq!(positions(&probes), [(0x9001, 1); 3]);
    assert_eq!(probes.unlocated, 0);
}

#[test]
fn a_section_of_a_relocatable_file_belongs_to_its_code() {
    let one = |index| Writer::default().function("twin", 1, 0).probe(index, 0, 0).0;
    let (first, second) = (one(1), one(2));
    let code = |start| Some(ImageAddress(start)..ImageAddress(start + 0x100));
    let sections = [
        ProbeSection { data: &first, code: code(0x2000) },
        ProbeSection { data: &second, code: code(0x1000) },
    ];
    let symbols = [0x1000, 0x2000].map(|address| (&b"twin"[..], ImageAddress(address)));
    let probes = Probes::parse(&sections, symbols.into_iter(), true).expect("probes");
    assert_eq!(positions(&probes), [(0x1000, 2), (0x2000, 1)]);
}

#[test]
fn addresses_as_they_stand_need_no_symbol() {
    let data = Writer::default().function("f", 2, 0).bytes(&[1, 0]).number(0x5000).probe(2, 0, 4).0;
    assert_eq!(positions(&parse(&data, &[]).expect("probes")), [(0x5000, 1), (0x5004, 2)]);
}

#[test]
fn descriptions_are_by_guid_and_the_first_counts() {
    let data = Writer::default()
        .number(9)
        .number(1)
        .bytes(b"\x03two")
        .number(4)
        .number(2)
        .bytes(b"\x01\xff")
        .number(9)
        .number(3)
        .bytes(b"\x00")
        .0;
    let mut probes = Probes::default();
    assert_eq!(probes.describe(&data, true), Ok(()));
    assert_eq!(probes.functions, [(4, 2, "\u{fffd}".to_owned()), (9, 1, "two".to_owned())]);
    for length in (1..data.len()).filter(|length| ![20, 38].contains(length)) {
        assert!(Probes::default().describe(&data[..length], true).is_err(), "{length}");
    }
}

#[test]
fn every_cut_and_every_flipped_byte_is_survived() {
    let whole = example();
    let is_whole = |length: &usize| parse(&whole[..*length], &SYMBOLS).is_ok();
    let cuts: Vec<usize> = (0..whole.len()).filter(is_whole).collect();
    assert_eq!(cuts.len(), 2, "nothing at all, and the first of two trees: {cuts:?}");
    for position in 0..whole.len() {
        for value in [0, 1, 3, 0x7f, 0x80, 0xff] {
            let mut data = whole.clone();
            data[position] = value;
            let _ = parse(&data, &SYMBOLS);
        }
    }
}

#[test]
fn no_depth_of_inlining_takes_the_stack_or_the_memory() {
    let mut writer = Writer::default();
    for _ in 0..100_000 {
        writer = writer.function("f", 0, 1).bytes(&[1]);
    }
    assert!(parse(&writer.0, &SYMBOLS).is_err(), "cut off");
    let mut writer = Writer::default();
    for _ in 0..100_000 {
        writer = writer.function("f", 1, 1).probe(1, 0, 0).bytes(&[1]);
    }
    let error = parse(&writer.0, &SYMBOLS).expect_err("too deep");
    assert!(error.what.contains("deeper"), "{error}");
    let many = Writer::default().function("f", 0, 0).0;
    let many = [&many[..8], &[0xff, 0xff, 0xff, 0xff, 0x0f, 0]].concat();
    assert!(parse(&many, &SYMBOLS).is_err());
}
