//! Heatmaps of a binary that is surely there: this test itself.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::Path;

use mepof_address::{Placement, Region, RuntimeAddress};
use mepof_binary::Binary;
use mepof_heatmap::{Caption, HeatCounter, Heatmap, HeatmapError, SectionRows, png, svg};
use mepof_trace::{BranchEntry, Sample, Sink};

const MOVED: u64 = 0x5555_0000_0000;

fn this_binary() -> Binary {
    Binary::open(&std::env::current_exe().unwrap()).unwrap()
}

/// As if everything ran `MOVED` bytes from where it was linked to.
fn placement(binary: &Binary) -> Placement {
    let region = |section: &mepof_binary::Section| Region {
        runtime: RuntimeAddress(section.addresses.start.0 + MOVED),
        image: section.addresses.start,
        size: section.addresses.end.0 - section.addresses.start.0,
    };
    Placement::new(binary.sections().iter().map(region).collect())
}

/// Every 40 ms, the functions of `binary` in turn.
fn record(binary: &Binary, timed: bool) -> HeatCounter {
    let mut counter = HeatCounter::default();
    for (number, function) in binary.functions().iter().enumerate().take(2000) {
        let entry = |to: u64| BranchEntry {
            from: RuntimeAddress(to + 1),
            to: RuntimeAddress(to),
            ..BranchEntry::default()
        };
        counter.sample(&Sample {
            time: timed.then_some(7_000_000_000 + number as u64 * 40_000_000),
            address: None,
            branches: &[entry(function.addresses.start.0 + MOVED), entry(0x1000)],
            consecutive: false,
            count: 1,
        });
    }
    counter
}

fn heatmap(timed: bool) -> Heatmap {
    let binary = this_binary();
    Heatmap::new(&record(&binary, timed), &placement(&binary), &binary, None, 100).unwrap()
}

#[test]
fn every_visit_is_in_the_picture_or_outside_of_it() {
    let map = heatmap(true);
    assert_eq!(map.visits, map.rows.iter().flatten().sum::<u64>());
    assert_eq!((map.visits, map.visits_outside, map.visits_untimed), (2000, 2000, 0));
    assert!((128..=256).contains(&map.columns()));
    let time = map.time.unwrap();
    assert!(time.start_ns <= 7_000_000_000 && time.column_ns.is_power_of_two());
}

#[test]
fn a_function_is_in_the_row_of_its_address() {
    let map = heatmap(true);
    for function in &map.functions {
        let start = map.address_of(function.row).unwrap();
        assert!((start..start + map.row_bytes).contains(&function.address));
        assert!(map.rows[function.row].iter().sum::<u64>() > 0);
    }
    assert!(map.rows.len() < 100 + map.sections.len());
}

#[test]
fn without_times_there_is_one_column_with_all_visits() {
    let map = heatmap(false);
    assert_eq!((map.columns(), map.time, map.visits), (1, None, 2000));
    assert!(svg(&map, &Caption::default()).unwrap().contains("the input has no times"));
}

#[test]
fn the_picture_is_a_png_of_the_size_that_its_axes_need() {
    let map = heatmap(true);
    let file = png(&map, &Caption { title: "a test".to_owned() }).unwrap();
    let mut reader = png_decoder(&file);
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    assert!(frame.width >= 1024 && frame.height >= 700, "{}x{}", frame.width, frame.height);
    let background = &pixels[..3];
    assert!(pixels.chunks(3).any(|pixel| pixel != background));
}

fn png_decoder(file: &[u8]) -> ::png::Reader<std::io::Cursor<&[u8]>> {
    ::png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap()
}

#[test]
fn the_svg_file_says_what_the_axes_say() {
    let map = heatmap(true);
    let file = svg(&map, &Caption { title: "<a & b>".to_owned() }).unwrap();
    assert!(file.contains("&lt;a &amp; b&gt;"));
    assert!(file.contains(">.text<"));
    let text = map.sections.iter().find(|section| section.name == ".text").unwrap();
    assert!(file.contains(&format!(">{:x}<", text.address)));
    assert!(file.contains("time since the first sample"));
    assert!(file.contains("data:image/png;base64,iVBOR"));
}

#[test]
fn the_name_of_a_section_does_not_hide_that_of_a_larger_one() {
    let mut map = heatmap(true);
    let section = |name: &str, first_row: usize, rows: usize| SectionRows {
        name: name.to_owned(),
        address: 0x1000 * first_row as u64,
        size: 0x1000 * rows as u64,
        first_row,
        rows,
    };
    map.sections = vec![section(".init", 0, 1), section(".text", 1, map.rows.len() - 1)];
    let file = svg(&map, &Caption::default()).unwrap();
    assert!(file.contains(">.text<") && !file.contains(">.init<"));
}

#[test]
fn a_record_of_something_else_is_refused() {
    let binary = this_binary();
    let nowhere = Placement::new(Vec::new());
    let refused = Heatmap::new(&record(&binary, true), &nowhere, &binary, None, 100);
    assert!(matches!(refused, Err(HeatmapError::Nothing(_))));
    let (counter, placement) = (record(&binary, true), placement(&binary));
    let refused = Heatmap::new(&counter, &placement, &binary, Some(".no"), 100).unwrap_err();
    assert!(refused.to_string().contains(".text"), "{refused}");
}

/// Draws a picture to look at: `HEATMAP=out.png cargo test -p mepof-heatmap -- --ignored`.
#[test]
#[ignore = "draws a picture for people"]
fn draw() {
    let out = std::env::var("HEATMAP").unwrap_or_else(|_| "heatmap.png".to_owned());
    let map = heatmap(true);
    let caption = Caption { title: "a test".to_owned() };
    std::fs::write(&out, png(&map, &caption).unwrap()).unwrap();
    std::fs::write(Path::new(&out).with_extension("svg"), svg(&map, &caption).unwrap()).unwrap();
}
