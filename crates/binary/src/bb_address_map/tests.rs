use super::*;

/// A section with `features` and one function at 0x1000 of two blocks, except what versions add.
fn section(version: u8, features: u8, rest: &[u8]) -> Vec<u8> {
    let mut data = vec![version, features];
    if version >= 5 {
        data.push(0);
    }
    data.extend(rest);
    data
}

fn address(address: u64) -> [u8; 8] {
    address.to_le_bytes()
}

fn read(data: &[u8]) -> Result<Vec<FunctionBlocks>, Damage> {
    parse_bb_address_maps(data, Machine::X86_64, true)
}

fn positions(function: &FunctionBlocks) -> Vec<(u32, u64, u64)> {
    let blocks = function.ranges.iter().flat_map(|range| &range.blocks);
    blocks.map(|block| (block.id, block.address.0, block.size)).collect()
}

/// Every feature of version 5: two ranges, calls, hashes, all kinds of analysis.
fn everything() -> Vec<u8> {
    let mut rest = vec![2]; // ranges
    rest.extend(address(0x1000));
    rest.push(2); // blocks
    rest.extend([0, 0, 2, 4, 5, 3, 0b01000]); // calls end at 4 and 9; size 12; falls through
    rest.extend([0xaa; 8]);
    rest.extend([7, 1, 0, 6, 0b10001]); // a byte of padding before it
    rest.extend([0xbb; 8]);
    rest.extend(address(0x2000));
    rest.extend([1, 3, 0, 0, 2, 0b00010]);
    rest.extend([0xcc; 8]);
    rest.push(100); // entry count
    rest.extend([50, 51, 2, 7, 90, 1, 3, 10, 2]); // frequencies; two successors of three numbers
    rest.extend([60, 61, 0]);
    rest.extend([0x80, 1, 71, 1, 0, 9, 9]);
    section(5, 0b1110_1111, &rest)
}

#[test]
fn every_feature_of_version_5_is_read_or_passed_over() {
    let data = [everything(), everything()].concat();
    let functions = read(&data).expect("two functions");
    assert_eq!(functions.len(), 2);
    assert_eq!(functions[0], functions[1]);
    let function = &functions[0];
    assert_eq!(function.address, ImageAddress(0x1000));
    assert_eq!(function.ranges.len(), 2);
    assert_eq!(positions(function), [(0, 0x1000, 12), (7, 0x100d, 6), (3, 0x2000, 2)]);
    let [first, second, third] = [
        &function.ranges[0].blocks[0],
        &function.ranges[0].blocks[1],
        &function.ranges[1].blocks[0],
    ];
    assert_eq!(first.call_ends, [4, 9]);
    assert_eq!(first.hash, Some(0xaaaa_aaaa_aaaa_aaaa));
    assert!(first.can_fall_through && !first.has_return);
    assert!(second.has_return && second.has_indirect_branch && !second.can_fall_through);
    assert!(third.has_tail_call && !third.is_landing_pad);
}

#[test]
fn versions_2_to_4_have_one_byte_of_features() {
    let plain = |rest: &[u8]| [&address(0x1000)[..], rest].concat();
    for (version, features, rest) in [
        (2, 0, &[2, 5, 0, 4, 8, 6, 2, 3, 1][..]),
        (3, 1 << 5, &[2, 5, 0, 1, 3, 1, 8, 6, 2, 0, 3, 1]),
        (3, 0, &[2, 5, 0, 4, 8, 6, 2, 3, 1]),
        (4, 1 << 6, &[2, 5, 0, 4, 8, 1, 1, 1, 1, 1, 1, 1, 1, 6, 2, 3, 1, 2, 2, 2, 2, 2, 2, 2, 2]),
    ] {
        let functions = read(&section(version, features, &plain(rest))).expect("a function");
        assert_eq!(positions(&functions[0]), [(5, 0x1000, 4), (6, 0x1006, 3)], "version {version}");
        let hash = functions[0].ranges[0].blocks[1].hash;
        assert_eq!(hash, (version == 4).then_some(0x0202_0202_0202_0202));
    }
}

#[test]
fn a_function_without_block_entries_still_has_its_ranges() {
    let rest = [&address(0x1000)[..], &[9, 33]].concat();
    let functions = read(&section(2, 1 << 4 | 1, &rest)).expect("a function");
    assert_eq!(functions[0].ranges, [BlockRange { address: ImageAddress(0x1000), blocks: vec![] }]);
}

#[test]
fn t32_code_is_where_its_bytes_are() {
    let data = [2, 0, 0x01, 0x10, 0, 0, 1, 0, 0, 4, 1];
    let functions = parse_bb_address_maps(&data, Machine::ARM, true).expect("a function");
    assert_eq!(functions[0].address, ImageAddress(0x1000));
    assert_eq!(positions(&functions[0]), [(0, 0x1000, 4)]);
}

#[test]
fn what_no_compiler_writes_is_damage() {
    let one_block = [&address(0x1000)[..], &[1, 0, 0, 4, 0x20]].concat();
    for (what, data) in [
        ("an old version", section(1, 0, &one_block)),
        ("a new version", section(6, 0, &one_block)),
        ("call ends in version 2", section(2, 1 << 5, &one_block)),
        ("hashes in version 3", section(3, 1 << 6, &one_block)),
        ("post-link counts in version 4", section(4, 1 << 7, &one_block)),
        ("unknown features", vec![5, 0, 1]),
        ("unknown flags of a block", section(2, 0, &one_block)),
        ("no ranges", section(2, 1 << 3, &[0])),
    ] {
        assert!(read(&data).is_err(), "{what}");
    }
}

#[test]
fn every_cut_and_every_flipped_byte_is_survived() {
    let whole = everything();
    assert!(read(&[]).is_ok_and(|functions| functions.is_empty()));
    for length in 1..whole.len() {
        assert!(read(&whole[..length]).is_err(), "cut off at {length}");
    }
    for position in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut data = whole.clone();
            data[position] = value;
            let _ = read(&data);
        }
    }
}

#[test]
fn a_claim_of_many_blocks_takes_no_memory() {
    let rest = [&address(0x1000)[..], &[0xff, 0xff, 0xff, 0xff, 0x0f]].concat();
    assert!(read(&section(2, 0, &rest)).is_err());
    assert!(read(&section(2, 1 << 3, &[0xff, 0xff, 0xff, 0xff, 0x0f])).is_err());
}
