use crate::colour::Rgb;

/// Which end of a text is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// What a picture is drawn on: pixels, or a file of shapes. Coordinates are pixels from the top
/// left corner.
pub(crate) trait Canvas {
    /// A filled rectangle.
    fn rectangle(&mut self, x: usize, y: usize, width: usize, height: usize, colour: Rgb);
    /// A line of text; `y` is its middle.
    fn text(&mut self, x: usize, y: usize, anchor: Anchor, colour: Rgb, text: &str);
    /// Cells side by side, each as large as `cell` says, row by row.
    fn cells(&mut self, x: usize, y: usize, cell: (usize, usize), columns: usize, cells: &[Rgb]);
}

/// The width of a character; texts are set in a fixed pitch.
pub(crate) const CHARACTER: usize = 8;
