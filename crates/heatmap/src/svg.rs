use std::fmt::Write as _;

use crate::Heatmap;
use crate::canvas::{Anchor, CHARACTER, Canvas};
use crate::colour::Rgb;
use crate::drawing::{Caption, Frame, draw};
use crate::raster::{PngError, encode};

/// A picture of shapes; the cells are an image within it, since there are a hundred thousand.
struct Shapes {
    text: String,
    outcome: Result<(), PngError>,
}

/// `map` as an SVG file. It refers to nothing outside of it.
pub fn svg(map: &Heatmap, caption: &Caption) -> Result<String, PngError> {
    let (width, height) = Frame::of(map).size;
    let mut shapes = Shapes { text: String::new(), outcome: Ok(()) };
    // Set in the pitch that the layout counts with.
    shapes.add(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"13\">\n"
    ));
    draw(map, caption, &mut shapes);
    shapes.add(format_args!("</svg>\n"));
    shapes.outcome.map(|()| shapes.text)
}

impl Shapes {
    fn add(&mut self, shape: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(shape);
    }
}

impl Canvas for Shapes {
    fn rectangle(&mut self, x: usize, y: usize, width: usize, height: usize, colour: Rgb) {
        let fill = hexadecimal(colour);
        self.add(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>\n"
        ));
    }

    fn text(&mut self, x: usize, y: usize, anchor: Anchor, colour: Rgb, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (fill, length) = (hexadecimal(colour), CHARACTER * text.chars().count());
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x}\" y=\"{y}\" dy=\".35em\" text-anchor=\"{anchor}\" \
             textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{fill}\">\
             {text}</text>\n"
        ));
    }

    fn cells(&mut self, x: usize, y: usize, cell: (usize, usize), columns: usize, cells: &[Rgb]) {
        let rows = cells.len() / columns.max(1);
        let (width, height) = (columns * cell.0, rows * cell.1);
        match encode(columns, rows, cells) {
            Ok(file) => {
                let data = base64(&file);
                self.add(format_args!(
                    "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
                     preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" \
                     href=\"data:image/png;base64,{data}\"/>\n"
                ));
            }
            Err(error) => self.outcome = Err(error),
        }
    }
}

fn hexadecimal([red, green, blue]: Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Text for XML; characters that XML forbids are dropped.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| chunk.get(at).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit) & 63) as usize;
            let letter = DIGITS.get(value).filter(|_| digit <= chunk.len());
            text.push(letter.map_or('=', |&letter| char::from(letter)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let encoded =
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        let expected = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        assert_eq!(encoded, expected);
    }

    #[test]
    fn names_cannot_break_the_file() {
        assert_eq!(escaped("a<b>&\"c\u{1}\n"), "a&lt;b&gt;&amp;&quot;c");
    }
}
