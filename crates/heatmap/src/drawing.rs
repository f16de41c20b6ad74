use crate::axis;
use crate::canvas::{Anchor, CHARACTER, Canvas};
use crate::colour::{FAINT, INK, PAPER, colour, ramp};
use crate::{Heatmap, TimeAxis};

/// The title above the picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caption {
    /// What was recorded, such as the input's name.
    pub title: String,
}

const PLOT_WIDTH: usize = 1024;
const PLOT_HEIGHT: usize = 800;
/// Without time there is one column; it can be narrow.
const BAR_WIDTH: usize = 160;
const LEFT: usize = 168;
const TOP: usize = 64;
const BOTTOM: usize = 56;
/// Names of functions, and the scale beyond them.
const NAMES: usize = 248;
const SCALE: usize = 112;
/// Between the middles of two lines of text.
const LINE: usize = 14;
const NAME_CHARACTERS: usize = (NAMES - 24) / CHARACTER;

/// Where things are, in pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    cell: (usize, usize),
    plot: (usize, usize),
    /// The picture's width and height.
    pub size: (usize, usize),
}

impl Frame {
    pub fn of(map: &Heatmap) -> Self {
        let width = if map.time.is_some() { PLOT_WIDTH } else { BAR_WIDTH };
        let (columns, rows) = (map.columns().max(1), map.rows.len().max(1));
        let cell = ((width / columns).max(1), ((PLOT_HEIGHT + rows / 2) / rows).clamp(1, 64));
        let plot = (cell.0 * columns, cell.1 * rows);
        Self { cell, plot, size: (LEFT + plot.0 + NAMES + SCALE, TOP + plot.1 + BOTTOM) }
    }

    fn row(&self, row: usize) -> usize {
        TOP + row * self.cell.1
    }
}

/// Draws `map` on `canvas`, which has the size of its frame.
pub(crate) fn draw(map: &Heatmap, caption: &Caption, canvas: &mut impl Canvas) {
    let frame = Frame::of(map);
    canvas.rectangle(0, 0, frame.size.0, frame.size.1, PAPER);
    head(map, caption, canvas);
    let most = map.rows.iter().flatten().copied().max().unwrap_or_default();
    let cells: Vec<_> = map.rows.iter().flatten().map(|&count| colour(count, most)).collect();
    canvas.cells(LEFT, TOP, frame.cell, map.columns().max(1), &cells);
    addresses(map, frame, canvas);
    match map.time {
        Some(time) => times(map, time, frame, canvas),
        None => {
            let middle = LEFT + frame.plot.0 / 2;
            let below = TOP + frame.plot.1 + LINE;
            canvas.text(middle, below, Anchor::Middle, INK, "whole record");
        }
    }
    functions(map, frame, canvas);
    scale(most, frame, canvas);
}

fn head(map: &Heatmap, caption: &Caption, canvas: &mut impl Canvas) {
    let binary = map.binary.rsplit('/').next().unwrap_or_default();
    let title = if caption.title.is_empty() {
        format!("code of {binary} that ran")
    } else {
        format!("code of {binary} that ran in {}", caption.title)
    };
    canvas.text(LEFT, 20, Anchor::Start, INK, &title);
    let all = map.visits.saturating_add(map.visits_outside).max(1);
    let mut what = format!(
        "{} visits of {} granules, {:.1} % of all; a row is {}",
        axis::count(map.visits),
        axis::bytes(map.granule_bytes),
        100.0 * map.visits as f64 / all as f64,
        axis::bytes(map.row_bytes),
    );
    match map.time {
        Some(time) => {
            let width = time.column_ns as f64;
            what.push_str(&format!(", a column {}", axis::time(width, width / 10.0)));
        }
        None => what.push_str("; the input has no times"),
    }
    canvas.text(LEFT, 20 + LINE, Anchor::Start, FAINT, &what);
}

/// Addresses and names of sections, on the left; of those that would overlap, the one with more
/// rows. Between starts there are marks wherever they fit.
fn addresses(map: &Heatmap, frame: Frame, canvas: &mut impl Canvas) {
    let mut sections: Vec<_> = map.sections.iter().collect();
    sections.sort_by_key(|section| (std::cmp::Reverse(section.rows), section.first_row));
    let mut taken: Vec<usize> = Vec::new();
    for section in sections {
        let start = frame.row(section.first_row);
        if section.first_row > 0 {
            canvas.rectangle(LEFT - 8, start, frame.plot.0 + 8, 1, FAINT);
        }
        if taken.iter().any(|other| other.abs_diff(start) < 2 * LINE) {
            continue;
        }
        taken.push(start);
        mark(section.address, start, canvas);
        canvas.text(LEFT - 12, start + LINE, Anchor::End, FAINT, &section.name);
        let mut free_from = start + 2 * LINE;
        let end = frame.row(section.first_row + section.rows);
        let every = (5 * LINE / frame.cell.1).max(1);
        for row in (section.first_row + every..section.first_row + section.rows).step_by(every) {
            let y = frame.row(row);
            if let (true, Some(address)) = (y >= free_from && y + LINE < end, map.address_of(row)) {
                mark(address, y, canvas);
                free_from = y + LINE;
            }
        }
    }
}

fn mark(address: u64, y: usize, canvas: &mut impl Canvas) {
    canvas.rectangle(LEFT - 8, y, 8, 1, INK);
    canvas.text(LEFT - 12, y, Anchor::End, INK, &format!("{address:x}"));
}

fn times(map: &Heatmap, time: TimeAxis, frame: Frame, canvas: &mut impl Canvas) {
    let span = time.column_ns as f64 * map.columns() as f64;
    let step = axis::step(span, 10);
    let below = TOP + frame.plot.1;
    let marks = (0..).map(|number| f64::from(number) * step).take_while(|&at| at < span);
    for at in marks {
        let x = LEFT + (at / span * frame.plot.0 as f64) as usize;
        canvas.rectangle(x, below, 1, 6, INK);
        canvas.text(x, below + LINE, Anchor::Middle, INK, &axis::time(at, step));
    }
    let middle = LEFT + frame.plot.0 / 2;
    canvas.text(middle, below + 5 * LINE / 2, Anchor::Middle, FAINT, "time since the first sample");
}

/// The names of the hottest functions, each beside its row; of those that would overlap, the
/// hotter one.
fn functions(map: &Heatmap, frame: Frame, canvas: &mut impl Canvas) {
    let x = LEFT + frame.plot.0;
    let mut taken: Vec<usize> = Vec::new();
    for function in &map.functions {
        let y = frame.row(function.row) + frame.cell.1 / 2;
        if taken.iter().any(|other| other.abs_diff(y) < LINE) {
            continue;
        }
        taken.push(y);
        canvas.rectangle(x, y, 6, 1, INK);
        let share = format!("{:.1} % ", function.percent);
        let room = NAME_CHARACTERS.saturating_sub(share.len());
        let mut name: String = function.name.chars().take(room).collect();
        if name.len() < function.name.len() {
            name.pop();
            name.push('~');
        }
        canvas.text(x + 10, y, Anchor::Start, INK, &format!("{share}{name}"));
    }
}

/// The scale of colours, at the right.
fn scale(most: u64, frame: Frame, canvas: &mut impl Canvas) {
    let x = LEFT + frame.plot.0 + NAMES;
    let height = frame.plot.1.clamp(2 * LINE, 300);
    for line in 0..height {
        let position = 1.0 - line as f64 / (height - 1) as f64;
        canvas.rectangle(x, TOP + line, 16, 1, ramp(position));
    }
    canvas.text(x, TOP - LINE, Anchor::Start, FAINT, "visits");
    let mut free_below = TOP + height + LINE;
    let decades = (0..20u32).map_while(|power| 10u64.checked_pow(power));
    let values = decades.take_while(|&value| value < most).chain([most.max(1)]);
    let marks: Vec<u64> = values.collect();
    // From the top down: the largest is always there.
    let mut last = None;
    for value in marks.into_iter().rev() {
        let position = crate::colour::position(value, most);
        let y = TOP + ((1.0 - position) * (height - 1) as f64) as usize;
        if last.is_some_and(|above: usize| y < above + LINE) || y >= free_below {
            continue;
        }
        canvas.rectangle(x + 16, y, 5, 1, INK);
        canvas.text(x + 25, y, Anchor::Start, INK, &axis::count(value));
        last = Some(y);
        free_below = free_below.max(y + 1);
    }
}
