//! Instructions against `llvm-objdump` on what Clang compiles and on assembly.

use std::collections::BTreeMap;
use std::fs;

use mepof_address::ImageAddress;
use mepof_binary::{Binary, instructions};
use mepof_machine::{Flow, Instruction};

use crate::llvm;

const CODE: &str = r#"
typedef unsigned long ulong;
extern int far_away(int), other(const char *, ...);
extern int (*table[8])(int);
struct big { long a[64]; double d; };

static __attribute__((noinline)) int local(int x) { return x * far_away(x) + 1; }
int tail(int x) { return far_away(x + 1); }
int tail_pointer(int x) { return table[x & 7](x); }
int pointer(int x) { return table[x & 7](x) + table[1](2); }
int choose(int x) {
    switch (x) {
    case 0: return far_away(1);
    case 1: return local(2);
    case 2: return other("x", 3);
    case 3: return table[2](4);
    case 4: return far_away(9) * 3;
    case 5: return local(7) / 5;
    case 6: return 8;
    case 9: return tail(x) - 1;
    }
    return -1;
}
int jump(int x) {
    static const void *const labels[] = {&&a, &&b, &&c};
    goto *labels[x % 3];
a:  x += far_away(1);
b:  x ^= far_away(2);
c:  return x;
}
int loops(const int *p, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] & 1) continue;
        if (p[i] == 0x7fff) break;
        for (int j = i; j > 0; j /= 3) sum += p[j] > sum ? local(j) : -j;
    }
    return sum;
}
long wide(long a, long b, unsigned long c) { return a / (b | 1) + (long)(c % 77) + (a << (b & 31)); }
double real(double x, float y, const struct big *s) {
    double t = 0;
    for (int i = 0; i < 64; i++) t += s->a[i] * x - y / (s->d + i);
    return t;
}
void copy(struct big *to, const struct big *from, int n) {
    __builtin_memcpy(to, from, sizeof *to);
    for (int i = 0; i < n; i++) to[i].d = from[i].a[3];
}
int atomics(int *p, ulong *q) {
    __atomic_fetch_add(p, 3, __ATOMIC_SEQ_CST);
    int expected = 4;
    __atomic_compare_exchange_n(p, &expected, 5, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return expected + __atomic_exchange_n(q, 9, __ATOMIC_SEQ_CST);
}
int trap(int x) { if (x > 3) __builtin_trap(); if (x == 1) __builtin_debugtrap(); return x; }
int bits(unsigned x) { return __builtin_popcount(x) + __builtin_clz(x | 1) + __builtin_ctz(x | 8); }
int clamp(int a, int b) { if (a < 0) return b; if (b < 0 && (a & 16)) return far_away(b); return a + b; }
int recursive(int n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }
"#;

const PREFIXES: [&str; 12] = [
    "rep", "repe", "repne", "lock", "notrack", "bnd", "cs", "ds", "es", "data16", "rex64",
    "xacquire",
];

/// An instruction as `llvm-objdump` prints it.
struct Printed {
    address: u64,
    mnemonic: String,
    operands: String,
}

impl Printed {
    /// The address that a direct branch prints as its last operand before the symbol.
    fn target(&self) -> Option<u64> {
        let operand = self.operands.split(" <").next()?.rsplit(", ").next()?;
        u64::from_str_radix(operand.trim().strip_prefix("0x")?, 16).ok()
    }
}

fn disassemble(directory: &std::path::Path, file: &str, arguments: &[&str]) -> Vec<Printed> {
    let fixed = ["-d", "-z", "--no-show-raw-insn", "--no-print-imm-hex", file];
    let text = llvm::run(directory, "llvm-objdump-22", &[&fixed, arguments].concat());
    let mut printed: Vec<Printed> = Vec::new();
    for line in text.lines().filter(|line| !line.contains("file format")) {
        let Some((address, rest)) = line.trim_start().split_once(':') else { continue };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        let (mnemonic, operands) = rest.trim().split_once(['\t', ' ']).unwrap_or((rest.trim(), ""));
        let (mnemonic, operands) = (mnemonic.to_owned(), operands.trim().to_owned());
        match printed.last_mut() {
            // x86: a prefix is printed as a separate instruction, or before the mnemonic.
            Some(last) if PREFIXES.contains(&last.mnemonic.as_str()) => {
                (last.mnemonic, last.operands) = (mnemonic, operands);
            }
            _ => printed.push(Printed { address, mnemonic, operands }),
        }
        if let Some(last) = printed.last_mut() {
            while PREFIXES.contains(&last.mnemonic.as_str()) && !last.operands.is_empty() {
                let all = std::mem::take(&mut last.operands);
                let (mnemonic, operands) = all.split_once(['\t', ' ']).unwrap_or((&all, ""));
                (last.mnemonic, last.operands) = (mnemonic.to_owned(), operands.trim().to_owned());
            }
        }
    }
    printed
}

/// Compares our walk over all code of `file` with what objdump prints: the same addresses, hence
/// the same sizes, and the flow that `expected` makes of the mnemonic.
fn compare(
    test: &str,
    file: &str,
    arguments: &[&str],
    expected: impl Fn(&Printed) -> Option<(Flow, bool)>,
) {
    let directory = llvm::path(test);
    let printed = disassemble(&directory, file, arguments);
    let binary = Binary::open(&directory.join(file)).expect("an ELF file");
    let ours: BTreeMap<u64, Instruction> = binary
        .sections()
        .iter()
        .flat_map(|section| instructions(&binary, section.addresses.clone()))
        .map(|(address, instruction)| (address.0, instruction))
        .collect();
    let mut compared = 0;
    for (index, line) in printed.iter().enumerate() {
        let what = format!("{file} {:#x}: {} {}", line.address, line.mnemonic, line.operands);
        let Some((flow, predicated)) = expected(line) else { continue };
        let found = ours.get(&line.address).unwrap_or_else(|| panic!("{what}: none of ours"));
        assert_eq!((found.flow, found.predicated), (flow, predicated), "{what}");
        if let Some(next) = printed.get(index + 1).filter(|next| next.address > line.address) {
            // Zeros and data may lie in between.
            let distance = next.address - line.address;
            assert!(distance >= u64::from(found.size), "{what}: {} bytes", found.size);
        }
        compared += 1;
    }
    assert!(compared > 20, "{file}: only {compared} instructions");
    let starts: std::collections::BTreeSet<u64> = printed.iter().map(|line| line.address).collect();
    let beyond: Vec<_> = ours.keys().filter(|address| !starts.contains(address)).take(8).collect();
    assert!(beyond.is_empty(), "{file}: {beyond:x?} are ours only");
}

/// Compiles and links [`CODE`] for `target` as `file`.
fn build(test: &str, file: &str, target: &str, flags: &[&str]) {
    let directory = llvm::path(test);
    fs::write(directory.join("code.c"), CODE).expect("a file");
    let object = format!("{file}.o");
    let target = format!("--target={target}");
    let fixed = [&target, "-c", "code.c", "-o", &object, "-ffreestanding", "-fno-pic"];
    llvm::run(&directory, "clang-22", &[&fixed, flags].concat());
    link(test, file);
}

fn link(test: &str, file: &str) {
    let directory = llvm::path(test);
    let object = format!("{file}.o");
    let arguments =
        ["--unresolved-symbols=ignore-all", "-e", "0", "-z", "norelro", "-o", file, &object];
    llvm::run(&directory, "ld.lld-22", &arguments);
}

/// Assembles `source` for `target` and links it as `file`.
fn assemble(test: &str, file: &str, target: &str, attributes: &str, source: &str) {
    let directory = llvm::path(test);
    fs::write(directory.join("code.s"), source).expect("a file");
    let object = format!("{file}.o");
    let (triple, attributes) = (format!("--triple={target}"), format!("--mattr={attributes}"));
    let arguments = ["--filetype=obj", &triple, &attributes, "code.s", "-o", &object];
    llvm::run(&directory, "llvm-mc-22", &arguments);
    link(test, file);
}

fn to(line: &Printed) -> ImageAddress {
    ImageAddress(line.target().unwrap_or_else(|| panic!("{} has no target", line.operands)))
}

fn x86_flow(line: &Printed) -> Option<(Flow, bool)> {
    let mnemonic = line.mnemonic.as_str();
    let indirect = line.operands.starts_with('*');
    let flow = match mnemonic {
        "<unknown>" => return None,
        "jmp" | "jmpq" | "ljmpl" | "ljmpq" if indirect => Flow::IndirectJump,
        "call" | "callq" | "lcalll" | "lcallq" if indirect => Flow::IndirectCall,
        "jmp" => Flow::Jump(to(line)),
        "callq" | "call" => Flow::Call(to(line)),
        "ret" | "retq" | "lretl" | "lretq" => Flow::Return,
        "loop" | "loope" | "loopne" | "xbegin" => Flow::Conditional(to(line)),
        "syscall" | "sysenter" | "sysretq" | "sysretl" | "sysexitl" | "sysexitq" | "iretq"
        | "iretl" | "int" | "vmcall" | "vmmcall" | "vmlaunch" | "vmresume" => Flow::System,
        "int3" | "ud2" | "ud1l" | "ud1q" => Flow::Stop,
        jump if jump.starts_with('j') => Flow::Conditional(to(line)),
        _ => Flow::Next,
    };
    Some((flow, false))
}

#[test]
fn x86_agrees_with_objdump() {
    let test = "instructions-x86";
    llvm::directory(test);
    for (file, flags) in [
        ("o2", &["-O2"][..]),
        ("os", &["-Os", "-mavx2", "-fcf-protection=full"]),
        ("o0", &["-O0", "-mcmodel=kernel"]),
        ("o3", &["-O3", "-mavx512f", "-mavx512vl", "-mretpoline", "-mfunction-return=keep"]),
    ] {
        build(test, file, "x86_64-linux-gnu", flags);
        compare(test, file, &[], x86_flow);
    }
    let source = "
        f: jmp f; .byte 0x2e; jmp g; jne f; jne g; jrcxz f; loop f; loopne f; xbegin g; xabort $1; xend
        call f; call *%rax; call *8(%rax); call *g(%rip); ljmpl *(%rax); lcalll *(%rax); notrack jmp *%rax
        ret; rep ret; ret $8; lretq; iretq; sysretq; sysretl; syscall; sysenter; sysexitl; int $0x80; int3
        ud2; ud1 (%rax), %eax; hlt; vmcall; vmmcall; vmlaunch; vmresume; swapgs; cli; sti; wrmsr; rdtsc
        rep movsb; rep stosq; repne scasb; rep insb; rep outsb; movsb; pause; endbr64; lock incl (%rax)
        lfence; clac; stac; xsaves (%rax); invpcid (%rax), %rax; wbinvd; monitor; mwait; tpause %eax
        .space 32, 0x90
        g: nopw 0x1234(%rax,%rax); nopl (%rax); data16 data16 nopw %cs:0x0(%rax,%rax)
        movabs $0x123456789abcdef0, %rax; mov %gs:0x28, %rax; incl %gs:0(%rip); ret
    ";
    assemble(test, "assembly", "x86_64-linux-gnu", "+rtm,+waitpkg,+invpcid,+xsaves", source);
    compare(test, "assembly", &["--mattr=+rtm,+waitpkg,+invpcid,+xsaves"], x86_flow);
}

fn a64_flow(line: &Printed) -> Option<(Flow, bool)> {
    let flow = match line.mnemonic.as_str() {
        // Undecodable words of the test are data.
        "<unknown>" | ".word" | ".xword" => return None,
        "b" | "b.al" | "b.nv" => Flow::Jump(to(line)),
        "bl" => Flow::Call(to(line)),
        "br" | "braa" | "brab" | "braaz" | "brabz" => Flow::IndirectJump,
        "blr" | "blraa" | "blrab" | "blraaz" | "blrabz" => Flow::IndirectCall,
        "ret" | "retaa" | "retab" | "retaasppc" | "retabsppc" | "retaasppcr" | "retabsppcr" => {
            Flow::Return
        }
        "eret" | "eretaa" | "eretab" | "drps" | "svc" | "hvc" | "smc" | "dcps1" | "dcps2"
        | "dcps3" => Flow::System,
        "brk" | "udf" | "hlt" => Flow::Stop,
        mnemonic if ["b.", "bc.", "cb", "tbz", "tbnz"].iter().any(|p| mnemonic.starts_with(p)) => {
            Flow::Conditional(to(line))
        }
        _ => Flow::Next,
    };
    Some((flow, false))
}

#[test]
fn a64_agrees_with_objdump() {
    let test = "instructions-a64";
    llvm::directory(test);
    for (file, flags) in [
        ("o2", &["-O2"][..]),
        ("o3", &["-O3", "-march=armv9-a+sve2", "-mbranch-protection=standard"]),
        ("o0", &["-O0", "-march=armv8.3-a", "-mbranch-protection=pac-ret+leaf"]),
        ("cmpbr", &["-O2", "-march=armv9.6-a+cmpbr"]),
    ] {
        build(test, file, "aarch64-linux-gnu", flags);
        compare(test, file, &["--mattr=+all"], a64_flow);
    }
    let source = "
        f: b f; b g; bl f; bl g; b.eq f; b.al g; b.nv f; bc.ne g; cbz x0, f; cbnz w3, g; tbz x1, #33, f
        tbnz w2, #3, g; cbgt x0, x1, f; cbhi w0, w1, g; cblt x3, #5, f; cbeq w3, #63, g; cbbge w1, w2, f
        cbhne w1, w2, g; br x0; blr x1; ret; ret x3; braa x0, x1; brab x0, sp; braaz x2; brabz x3
        blraa x0, x1; blrab x0, sp; blraaz x2; blrabz x3; retaa; retab; eret; eretaa; eretab; drps
        retaasppc f; retabsppc f; retaasppcr x1; retabsppcr x2; svc #0; hvc #1; smc #2; brk #0x800; hlt #3
        udf #0; udf #7; dcps1; dcps2 #1; dcps3 #2; wfi; wfe; nop; isb; hint #34; autiasp; pacibsp; msr daifset, #2
        g: ldr x0, f; adr x0, f; adrp x0, f; mrs x0, tpidr_el1; sys #0, c7, c5, #0; cas w0, w1, [x2]; ret
    ";
    assemble(test, "assembly", "aarch64-linux-gnu", "+all", source);
    compare(test, "assembly", &["--mattr=+all"], a64_flow);
}

const CONDITIONS: [&str; 17] = [
    "eq", "ne", "hs", "cs", "lo", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le",
    "al",
];

/// A mnemonic with its condition and width split off.
fn arm_mnemonic(mnemonic: &str) -> (&str, bool) {
    let mnemonic = mnemonic.trim_end_matches(".w").trim_end_matches(".n");
    for base in [
        "b", "bl", "bx", "blx", "bxj", "pop", "ldm", "ldmdb", "ldmib", "ldmda", "ldr", "mov",
        "movs", "subs", "add", "sub", "svc", "hvc", "smc", "eret", "udf",
    ] {
        if let Some(rest) = mnemonic.strip_prefix(base) {
            if rest.is_empty() || CONDITIONS.contains(&rest) {
                return (base, !rest.is_empty() && rest != "al");
            }
        }
    }
    (mnemonic, false)
}

fn arm_flow(line: &Printed) -> Option<(Flow, bool)> {
    // Data is printed with its bytes.
    let data = [".word", ".short", ".byte", "<unknown>"];
    if data.iter().any(|data| line.mnemonic == *data || line.operands.contains(data)) {
        return None;
    }
    let (mnemonic, predicated) = arm_mnemonic(&line.mnemonic);
    let operands = line.operands.split('@').next()?.trim();
    let into_pc = operands.starts_with("pc,");
    let flow = match mnemonic {
        "b" if predicated => return Some((Flow::Conditional(to(line)), false)),
        "b" => Flow::Jump(to(line)),
        "cbz" | "cbnz" => Flow::Conditional(to(line)),
        "bl" => Flow::Call(to(line)),
        "blx" if operands.starts_with("0x") => Flow::Call(to(line)),
        "blx" => Flow::IndirectCall,
        "bx" | "bxj" if operands == "lr" => Flow::Return,
        "bx" | "bxj" | "tbb" | "tbh" => Flow::IndirectJump,
        "ldm" | "ldmdb" | "ldmib" | "ldmda" if operands.ends_with("pc} ^") => Flow::System,
        "pop" | "ldm" | "ldmdb" | "ldmib" | "ldmda" if operands.ends_with("pc}") => Flow::Return,
        "mov" if operands == "pc, lr" => Flow::Return,
        "subs" | "movs" if into_pc => Flow::System,
        "ldr" if operands == "pc, [sp], #4" => Flow::Return,
        "add" | "sub" | "mov" | "ldr" if into_pc => Flow::IndirectJump,
        "svc" | "hvc" | "smc" | "eret" | "rfeia" | "rfedb" => Flow::System,
        "udf" | "trap" | "bkpt" | "hlt" => Flow::Stop,
        _ => Flow::Next,
    };
    Some((flow, predicated && flow != Flow::Next))
}

#[test]
fn arm_agrees_with_objdump() {
    let test = "instructions-arm";
    llvm::directory(test);
    for (file, target, flags) in [
        ("a32", "armv7a-linux-gnueabi", &["-O2", "-marm"][..]),
        ("a32-o0", "armv7a-linux-gnueabi", &["-O0", "-marm", "-mfloat-abi=soft"]),
        ("a32-v5", "armv5te-linux-gnueabi", &["-Os", "-marm"]),
        ("t32", "armv7a-linux-gnueabi", &["-O2", "-mthumb"]),
        ("t32-os", "armv8a-linux-gnueabi", &["-Os", "-mthumb"]),
        ("t32-o0", "armv7a-linux-gnueabi", &["-O0", "-mthumb"]),
    ] {
        build(test, file, target, flags);
        compare(test, file, &[], arm_flow);
    }
    let a32 = "
        .arm
        f: b f; b g; beq f; bl g; blne f; bx lr; bxne lr; bx r3; blx r4; blx t; bxj r1; pop {r4, pc}
        popeq {r4, pc}; pop {pc}; ldmdb r11, {r11, sp, pc}; ldm sp!, {r0, pc}^; ldm r0, {r1, r2}; mov pc, lr
        moveq pc, lr; mov pc, r3; movs pc, lr; subs pc, lr, #4; add pc, pc, r0; ldr pc, [r0]; ldr pc, [sp], #4
        ldrne pc, [r1, r2, lsl #2]; svc #0; hvc #1; smc #2; eret; udf #3; bkpt #4; hlt #5; rfeia sp!
        cmp pc, r0; tst pc, #1; mul r0, r1, r2; ldrd r0, r1, [r2]; strh r0, [r1]; movw r0, #1; mrs r0, cpsr
        clz r0, r1; umull r0, r1, r2, r3; ldrex r0, [r1]; cps #16; wfi; nop; dmb sy; mcr p15, 0, r0, c7, c5, 0
        stm r0, {r1, pc}; str pc, [r0]; ldrb r0, [r1]; usad8 r0, r1, r2; pld [r0]; setend be
        g: vldr d0, [r0]; vadd.f64 d0, d1, d2; bx lr
        .thumb
        .thumb_func
        t: bx lr
    ";
    assemble(test, "assembly-a32", "armv8a-linux-gnueabi", "+virtualization,+neon", a32);
    compare(test, "assembly-a32", &["--mattr=+v8,+virtualization,+neon"], arm_flow);
    let t32 = "
        .syntax unified
        .thumb
        f: b f; b.w g; beq f; beq.w g; bl g; blx a; bx lr; bx r3; blx r4; cbz r0, g0; cbnz r3, g0; pop {r4, pc}
        pop {r4, r5}; pop.w {r4, r8, pc}; g0: ldmdb r1!, {r2, pc}; ldr pc, [sp], #4; ldr.w pc, [r0, r1, lsl #2]
        ldr.w pc, [r0, #4]; tbb [pc, r0]; tbh [pc, r1, lsl #1]; mov pc, lr; mov pc, r3; add pc, r1; subs pc, lr, #4
        rfeia sp!; svc #3; hvc #1; smc #2; udf #1; udf.w #2; bkpt #1; hlt #3; bxj r2; mov r8, r9; add r8, r1
        it eq; bxeq lr; itt ne; movne r0, #1; bne g; ite ge; addge r0, #1; poplt {r4, pc}; it eq; bleq g
        nop; nop.w; wfi; mrs r0, cpsr; msr cpsr_fc, r0; movw r0, #1; ldrd r0, r1, [r2]; strex r0, r1, [r2]
        ldrb.w r0, [r1]; ldrh.w r0, [r1]; pld [r0]; str.w r0, [r1]; ldm r0, {r1, r2}; stmdb r1!, {r2, lr}
        g: vadd.f64 d0, d1, d2; bx lr
        .arm
        .type a, %function
        a: bx lr
    ";
    assemble(test, "assembly-t32", "thumbv8a-linux-gnueabi", "+virtualization,+neon", t32);
    compare(test, "assembly-t32", &["--mattr=+v8,+virtualization,+neon"], arm_flow);
}
