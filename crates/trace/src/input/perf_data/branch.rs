//! `perf_branch_entry`, as each kind of hardware fills it in.

use mepof_address::RuntimeAddress;

use super::cursor::ByteOrder;
use super::format::{BRANCH_ENTRY, entry};
use crate::{BranchEntry, BranchKind, OTHER_SIDE, Space, Speculation};

/// Linux marks an entry of AMD's BRS that is another task's so (arch/x86/events/amd/brs.c,
/// `BRS_POISON`), and leaves it out. Should one get through, it is an empty entry.
const BRS_POISON: u64 = 0xffff_ffff_ffff_fffe;

/// What was seen in the branch stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryCounts {
    /// Given to the sink.
    pub(crate) passed: u64,
    /// Both sides of the other side of the system-call boundary.
    pub(crate) other_side: u64,
    /// Of a hypervisor.
    pub(crate) hypervisor: u64,
    /// Passed, but with an address that is zero.
    pub(crate) empty: u64,
    /// Passed, but undone by the CPU.
    pub(crate) wrong_path: u64,
    /// With a statement on speculation.
    pub(crate) speculation_known: u64,
    /// That say which way the prediction went.
    pub(crate) prediction_known: u64,
    /// Most entries in one stack.
    pub(crate) deepest: u64,
}

impl EntryCounts {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.passed += other.passed;
        self.other_side += other.other_side;
        self.hypervisor += other.hypervisor;
        self.empty += other.empty;
        self.wrong_path += other.wrong_path;
        self.speculation_known += other.speculation_known;
        self.prediction_known += other.prediction_known;
        self.deepest = self.deepest.max(other.deepest);
    }
}

/// Which entries to take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryFilter {
    pub(crate) order: ByteOrder,
    /// The lowest address of the kernel.
    pub(crate) kernel_space: u64,
    pub(crate) user: bool,
}

impl EntryFilter {
    pub(crate) fn new(order: ByteOrder, kernel_space: u64, space: Space) -> Self {
        Self { order, kernel_space, user: space == Space::User }
    }

    /// Whether an address is of the side that was asked for.
    pub(crate) fn is_ours(&self, address: u64) -> bool {
        (address >= self.kernel_space) != self.user
    }

    /// The address, or [`OTHER_SIDE`].
    pub(crate) fn seen_from_our_side(&self, address: u64) -> RuntimeAddress {
        seen_from_our_side(address, self.is_ours(address))
    }

    /// Puts the entries in `raw` into `entries`, the newest first as they are.
    ///
    /// Entries of the other side are left out. Code between the two entries around them then
    /// runs from [`OTHER_SIDE`] to [`OTHER_SIDE`], which is true.
    pub(crate) fn read(
        &self,
        raw: &[u8],
        entries: &mut Vec<BranchEntry>,
        counts: &mut EntryCounts,
    ) {
        entries.clear();
        for bytes in raw.chunks_exact(BRANCH_ENTRY) {
            let Some((from, to, flags)) = words(bytes, self.order) else { continue };
            let (from, to) = if to == BRS_POISON { (0, 0) } else { (from, to) };
            let (from_ours, to_ours) = (self.is_ours(from), self.is_ours(to));
            if !from_ours && !to_ours && (from, to) != (0, 0) {
                counts.other_side += 1;
                continue;
            }
            let mut entry = BranchEntry::default();
            // Most files have no flags but the prediction: the rest is decoded only where it is.
            if flags != 0 {
                let flags = Flags::new(flags, self.order);
                if flags.field(entry::PRIV) == entry::PRIV_HYPERVISOR {
                    counts.hypervisor += 1;
                    continue;
                }
                entry.mispredicted = flags.mispredicted();
                entry.speculation = flags.speculation();
                entry.kind = flags.kind();
                counts.prediction_known += u64::from(entry.mispredicted.is_some());
                counts.wrong_path += u64::from(entry.speculation == Speculation::WrongPath);
                counts.speculation_known += u64::from(entry.speculation != Speculation::Unknown);
            }
            counts.empty += u64::from(from == 0 || to == 0);
            entry.from = seen_from_our_side(from, from_ours);
            entry.to = seen_from_our_side(to, to_ours);
            entries.push(entry);
        }
        counts.passed += entries.len() as u64;
        counts.deepest = counts.deepest.max((raw.len() / BRANCH_ENTRY) as u64);
    }
}

fn seen_from_our_side(address: u64, ours: bool) -> RuntimeAddress {
    if ours || address == 0 { RuntimeAddress(address) } else { OTHER_SIDE }
}

fn words(bytes: &[u8], order: ByteOrder) -> Option<(u64, u64, u64)> {
    let (from, rest) = bytes.split_first_chunk()?;
    let (to, rest) = rest.split_first_chunk()?;
    Some((order.u64(*from), order.u64(*to), order.u64(*rest.first_chunk()?)))
}

/// The third word of an entry. A compiler for a big-endian machine gives bit-fields out from
/// the most significant bit.
#[derive(Clone, Copy)]
struct Flags {
    word: u64,
    order: ByteOrder,
}

impl Flags {
    fn new(word: u64, order: ByteOrder) -> Self {
        Self { word, order }
    }

    fn field(self, (lowest, width): (u32, u32)) -> u64 {
        let shift = match self.order {
            ByteOrder::Little => lowest,
            ByteOrder::Big => 64 - lowest - width,
        };
        self.word >> shift & ((1 << width) - 1)
    }

    fn mispredicted(self) -> Option<bool> {
        // Both are zero where the hardware does not say (or `no_flags` was asked for).
        match (self.field(entry::MISPREDICTED), self.field(entry::PREDICTED)) {
            (0, 0) => None,
            (mispredicted, _) => Some(mispredicted == 1),
        }
    }

    fn speculation(self) -> Speculation {
        match self.field(entry::SPEC) {
            entry::SPEC_WRONG_PATH => Speculation::WrongPath,
            entry::SPEC_NON_SPECULATIVE | entry::SPEC_CORRECT_PATH => Speculation::Correct,
            _ => Speculation::Unknown,
        }
    }

    fn kind(self) -> BranchKind {
        match self.field(entry::TYPE) {
            entry::TYPE_CONDITIONAL => BranchKind::Conditional,
            entry::TYPE_JUMP | entry::TYPE_INDIRECT_JUMP => BranchKind::Jump,
            entry::TYPE_CALL | entry::TYPE_INDIRECT_CALL | entry::TYPE_CONDITIONAL_CALL => {
                BranchKind::Call
            }
            entry::TYPE_RETURN | entry::TYPE_CONDITIONAL_RETURN => BranchKind::Return,
            entry::TYPE_SYSCALL | entry::TYPE_IRQ | entry::TYPE_SERROR => BranchKind::Entry,
            entry::TYPE_SYSRET | entry::TYPE_ERET => BranchKind::Exit,
            // Arm's BRBE: drivers/perf/arm_brbe.c, brbe_set_perf_entry_type().
            entry::TYPE_EXTENDED if self.field(entry::NEW_TYPE) == entry::NEW_TYPE_DEBUG_EXIT => {
                BranchKind::Exit
            }
            entry::TYPE_EXTENDED => BranchKind::Entry,
            _ => BranchKind::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const USER: u64 = 0x7f00_0000_1000;

    fn read(words: &[[u64; 3]], order: ByteOrder) -> (Vec<BranchEntry>, EntryCounts) {
        let raw: Vec<u8> = words
            .iter()
            .flatten()
            .flat_map(|word| match order {
                ByteOrder::Little => word.to_le_bytes(),
                ByteOrder::Big => word.to_be_bytes(),
            })
            .collect();
        let (mut entries, mut counts) = (Vec::new(), EntryCounts::default());
        EntryFilter::new(order, 1 << 63, Space::Kernel).read(&raw, &mut entries, &mut counts);
        (entries, counts)
    }

    fn field(value: u64, (lowest, _): (u32, u32)) -> u64 {
        value << lowest
    }

    #[test]
    fn user_code_is_one_place_to_a_kernel() {
        let stack = [
            [USER + 8, KERNEL, 0],
            [USER + 4, USER, 0],
            [USER + 4, USER, 0],
            [KERNEL + 4, USER + 2, 0],
            [KERNEL + 1, KERNEL + 2, 0],
        ];
        let (entries, counts) = read(&stack, ByteOrder::Little);
        let sides: Vec<_> = entries.iter().map(|entry| (entry.from.0, entry.to.0)).collect();
        assert_eq!(sides, [(1, KERNEL), (KERNEL + 4, 1), (KERNEL + 1, KERNEL + 2)]);
        assert_eq!((counts.passed, counts.other_side, counts.empty), (3, 2, 0));
    }

    #[test]
    fn empty_and_poisoned_entries_are_gaps() {
        let stack = [[0, 0, 0], [KERNEL, BRS_POISON, 0], [0, KERNEL, 0], [KERNEL, 0, 0]];
        let (entries, counts) = read(&stack, ByteOrder::Little);
        assert_eq!(entries.len(), 4);
        assert!(entries.iter().all(|entry| entry.from.0 == 0 || entry.to.0 == 0));
        assert_eq!(counts.empty, 4);
    }

    #[test]
    fn flags_say_prediction_speculation_and_kind() {
        let flags = |fields: u64| [KERNEL, KERNEL, fields];
        let stack = [
            flags(field(1, entry::MISPREDICTED) | field(entry::SPEC_WRONG_PATH, entry::SPEC)),
            flags(field(1, entry::PREDICTED) | field(entry::SPEC_CORRECT_PATH, entry::SPEC)),
            flags(field(entry::TYPE_EXTENDED, entry::TYPE) | field(1, entry::NEW_TYPE)),
            flags(field(entry::TYPE_CALL, entry::TYPE) | 0xffff << 4),
            flags(field(entry::PRIV_HYPERVISOR, entry::PRIV)),
        ];
        let (entries, counts) = read(&stack, ByteOrder::Little);
        let said: Vec<_> =
            entries.iter().map(|e| (e.mispredicted, e.speculation, e.kind)).collect();
        let expected = [
            (Some(true), Speculation::WrongPath, BranchKind::Unknown),
            (Some(false), Speculation::Correct, BranchKind::Unknown),
            (None, Speculation::Unknown, BranchKind::Entry),
            (None, Speculation::Unknown, BranchKind::Call),
        ];
        assert_eq!(said, expected);
        assert_eq!((counts.wrong_path, counts.speculation_known, counts.hypervisor), (1, 2, 1));
    }

    #[test]
    fn bit_fields_of_a_big_endian_machine_begin_at_the_top() {
        // predicted, type = call: bits 62 and 43..40 of the word.
        let flags = 1 << 62 | entry::TYPE_CALL << 40;
        let (entries, _) = read(&[[KERNEL, KERNEL, flags]], ByteOrder::Big);
        assert_eq!(
            entries.first().map(|e| (e.mispredicted, e.kind)),
            Some((Some(false), BranchKind::Call))
        );
    }
}
