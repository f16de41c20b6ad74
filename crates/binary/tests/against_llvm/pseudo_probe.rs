//! Pseudo probes of Clang 19 and 22 against `llvm-profgen`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use mepof_binary::{Binary, Probe, ProbeKind, Probes};

use crate::llvm;

const FIRST: &str = r#"
#ifndef COLD
#define COLD
#endif
extern int one(int) COLD, two(int) COLD;
extern int (*pointer)(int);
static inline int inner(int x) { return x > 5 ? one(x) * 2 : two(x); }
static inline int outer(int x) {
    int sum = 0;
    for (int i = 0; i < x; i++) sum += inner(i);
    return sum;
}
static __attribute__((noinline)) int twin(int x) { return x * 3 + one(x); }
int work(int x, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (x > i) sum += outer(x + i); else sum -= twin(i);
    }
    if (__builtin_expect(sum == 12345, 0)) { one(1); two(2); pointer(3); }
    return sum;
}
int choose(int x) {
    switch (x) {
    case 1: return one(1);
    case 2: return two(3);
    case 3: return pointer(4);
    }
    return outer(x) + inner(x - 1);
}
"#;

const SECOND: &str = r#"
extern int work(int, int), choose(int);
int one(int x) { return x + 1; }
int two(int x) { return x - 1; }
int (*pointer)(int) = one;
static __attribute__((noinline)) int twin(int x) { return x * 5 + two(x); }
int main(int argc, char **argv) { return work(argc, 3) + choose(argc) + twin(argc); }
"#;

fn compile(directory: &Path, compiler: &str, flags: &[&str]) {
    for (name, source) in [("first", FIRST), ("second", SECOND)] {
        let file = format!("{name}.c");
        fs::write(directory.join(&file), source).expect("a file");
        let fixed = ["-O2", "-g", "-fpseudo-probe-for-profiling", "-c", &file];
        llvm::run(directory, compiler, &[&fixed, flags].concat());
    }
}

fn link(directory: &Path) {
    let arguments = ["-e", "main", "-o", "program", "first.o", "second.o"];
    llvm::run(directory, "ld.lld-22", &arguments);
}

fn read(path: &Path) -> Probes {
    let binary = Binary::open(path).expect("an ELF file");
    Probes::read(&binary).expect("readable probes").expect("probes")
}

/// What llvm-profgen prints of a probe, in its words.
fn described(probe: &Probe, names: &HashMap<u64, &str>) -> String {
    let mut text = format!("FUNC: {} Index: {}", names[&probe.guid], probe.index);
    if probe.discriminator != 0 {
        text += &format!("  Discriminator: {}", probe.discriminator);
    }
    text += match probe.kind {
        ProbeKind::Block => "  Type: Block",
        ProbeKind::IndirectCall => "  Type: IndirectCall",
        ProbeKind::DirectCall => "  Type: DirectCall",
    };
    let calls: Vec<String> =
        probe.inlined_at.iter().map(|(guid, index)| format!("{}:{index}", names[guid])).collect();
    if !calls.is_empty() {
        text += &format!("  Inlined: @ {}", calls.join(" @ "));
    }
    text
}

type ByAddress = BTreeMap<u64, Vec<String>>;

fn ours(probes: &Probes) -> ByAddress {
    let names = probes.functions.iter().map(|(guid, _, name)| (*guid, name.as_str())).collect();
    let mut by_address = ByAddress::new();
    for probe in &probes.probes {
        by_address.entry(probe.address.0).or_default().push(described(probe, &names));
    }
    by_address
}

/// What llvm-profgen prints: probes before the instruction that they are at; and the functions.
fn printed(directory: &Path, file: &str) -> (ByAddress, Vec<(u64, u64, String)>) {
    let arguments = ["--show-pseudo-probe", "--show-disassembly-only", "--output=x", "--binary"];
    let text = llvm::run(directory, "llvm-profgen-22", &[&arguments[..], &[file]].concat());
    let (mut by_address, mut functions) = (ByAddress::new(), Vec::new());
    let mut waiting = Vec::new();
    for line in text.lines() {
        if let Some(probe) = line.strip_prefix(" [Probe]:\t") {
            waiting.push(probe.trim_end().to_owned());
        } else if let Some(function) = line.strip_prefix("GUID: ") {
            let (guid, name) = function.split_once(" Name: ").expect("a name");
            functions.push((guid.parse().expect("a GUID"), 0, name.to_owned()));
        } else if let Some(hash) = line.strip_prefix("Hash: ") {
            functions.last_mut().expect("a function").1 = hash.parse().expect("a hash");
        } else if let Some((address, _)) = line.trim_start().split_once(":\t") {
            if !waiting.is_empty() {
                let address = u64::from_str_radix(address, 16).expect("an address");
                by_address.insert(address, std::mem::take(&mut waiting));
            }
        }
    }
    (by_address, functions)
}

fn compare(test: &str, compiler: &str, flags: &[&str]) -> Probes {
    let directory = llvm::directory(test);
    compile(&directory, compiler, flags);
    link(&directory);
    let probes = read(&directory.join("program"));
    let (expected, functions) = printed(&directory, "program");
    assert!(expected.len() > 20, "{} addresses with probes", expected.len());
    assert_eq!(probes.functions, functions);
    assert_eq!(ours(&probes), expected);
    assert_eq!(probes.unlocated, 0);
    probes
}

#[test]
fn probes_agree_with_profgen() {
    compare("probes-22", "clang-22", &["-ffunction-sections"]);
    compare("probes-19", "clang-19", &["-ffunction-sections"]);
    compare("probes-plain", "clang-22", &["-O3"]);
    compare("probes-a64", "clang-22", &["--target=aarch64-linux-gnu"]);
}

#[test]
fn probes_of_parts_that_were_split_off_count_from_the_part() {
    let split = ["-mllvm", "-hot-cold-split=true", "-mllvm", "-hotcoldsplit-threshold=-10"];
    let flags = [&split[..], &["-DCOLD=__attribute__((cold))"]].concat();
    // llvm-profgen crashes on this program.
    let directory = llvm::directory("probes-split");
    compile(&directory, "clang-22", &flags);
    link(&directory);
    let binary = Binary::open(&directory.join("program")).expect("an ELF file");
    let probes = read(&directory.join("program"));
    assert_eq!(probes.unlocated, 0);
    let part = binary.functions().iter().find(|function| function.name.starts_with("work.cold"));
    let part = &part.expect("a part that was split off").addresses;
    let work = probes.functions.iter().find(|(.., name)| name == "work").expect("work").0;
    let inside = |probe: &&Probe| part.contains(&probe.address) && probe.guid == work;
    assert!(probes.probes.iter().any(|probe| inside(&probe)));
}

#[test]
fn functions_of_the_same_name_keep_their_own_probes() {
    let test = "probes-twins";
    let directory = llvm::directory(test);
    let flags = ["-ffunction-sections", "-fno-unique-internal-linkage-names"];
    compile(&directory, "clang-22", &flags);
    link(&directory);
    let path = directory.join("program");
    let probes = read(&path);
    assert_eq!(probes.unlocated, 0);
    let twins: Vec<u64> = Binary::open(&path)
        .expect("an ELF file")
        .functions()
        .iter()
        .filter(|function| function.name == "twin")
        .map(|function| function.addresses.start.0)
        .collect();
    assert_eq!(twins.len(), 2);
    let twin = probes.functions.iter().find(|(.., name)| name == "twin").expect("twin");
    // llvm-profgen knows one address for each name, and puts both functions' probes there.
    let guid = twin.0;
    let own = |start: u64| {
        let own = move |probe: &&Probe| (start..start + 32).contains(&probe.address.0);
        probes.probes.iter().filter(own)
    };
    let entries = |start| own(start).filter(|probe| (probe.guid, probe.index) == (guid, 1)).count();
    assert_eq!(entries(twins[0]), 1);
    assert_eq!(entries(twins[1]), 1);
    // Only the second has `two` inlined.
    let has_inlined = |start| own(start).any(|probe| *probe.inlined_at == [(guid, 2)]);
    assert!(!has_inlined(twins[0]) && has_inlined(twins[1]));
}

#[test]
fn an_object_has_the_probes_that_it_brings_to_the_program() {
    let directory = llvm::directory("probes-object");
    compile(&directory, "clang-22", &["-ffunction-sections"]);
    link(&directory);
    let program = read(&directory.join("program"));
    let objects = ["first.o", "second.o"].map(|object| read(&directory.join(object)));
    let count: usize = objects.iter().map(|object| object.probes.len()).sum();
    assert_eq!(count, program.probes.len());
    for (object, path) in objects.iter().zip(["first.o", "second.o"]) {
        assert_eq!(object.unlocated, 0);
        let binary = Binary::open(&directory.join(path)).expect("an ELF file");
        let entries = object.probes.iter().filter(|probe| {
            probe.index == 1 && probe.inlined_at.is_empty() && probe.kind == ProbeKind::Block
        });
        for entry in entries {
            let function = binary.function_at(entry.address).expect("a function");
            assert!(entry.address.0 - function.addresses.start.0 < 32, "{}", function.name);
        }
    }
}

#[test]
fn a_binary_without_probes_has_none() {
    let directory = llvm::directory("probes-none");
    fs::write(directory.join("second.c"), SECOND).expect("a file");
    llvm::run(&directory, "clang-22", &["-c", "second.c"]);
    let binary = Binary::open(&directory.join("second.o")).expect("an ELF file");
    assert!(Probes::read(&binary).expect("no error").is_none());
}
