use font8x8::legacy::BASIC_LEGACY;

use crate::Heatmap;
use crate::canvas::{Anchor, CHARACTER, Canvas};
use crate::colour::{PAPER, Rgb};
use crate::drawing::{Caption, Frame, draw};

/// Why a PNG file cannot be made: it would be too large.
pub type PngError = png::EncodingError;

/// A picture of pixels.
struct Raster {
    width: usize,
    height: usize,
    pixels: Vec<Rgb>,
}

/// `map` as a PNG file.
pub fn png(map: &Heatmap, caption: &Caption) -> Result<Vec<u8>, PngError> {
    let (width, height) = Frame::of(map).size;
    let mut raster = Raster { width, height, pixels: vec![PAPER; width * height] };
    draw(map, caption, &mut raster);
    encode(width, height, &raster.pixels)
}

/// Pixels as a PNG file.
pub(crate) fn encode(width: usize, height: usize, pixels: &[Rgb]) -> Result<Vec<u8>, PngError> {
    let mut file = Vec::new();
    let bound = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    let mut encoder = png::Encoder::new(&mut file, bound(width), bound(height));
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels.as_flattened())?;
    writer.finish()?;
    Ok(file)
}

impl Canvas for Raster {
    fn rectangle(&mut self, x: usize, y: usize, width: usize, height: usize, colour: Rgb) {
        let (left, right) = (x.min(self.width), (x + width).min(self.width));
        for row in y..(y + height).min(self.height) {
            if let Some(pixels) =
                self.pixels.get_mut(row * self.width + left..row * self.width + right)
            {
                pixels.fill(colour);
            }
        }
    }

    fn text(&mut self, x: usize, y: usize, anchor: Anchor, colour: Rgb, text: &str) {
        let width = CHARACTER * text.chars().count();
        let mut left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x.saturating_sub(width / 2),
            Anchor::End => x.saturating_sub(width),
        };
        let top = y.saturating_sub(CHARACTER / 2);
        for character in text.chars() {
            // What the font has no glyph for is shown as a question mark.
            let glyph = BASIC_LEGACY.get(character as usize).or(BASIC_LEGACY.get('?' as usize));
            for (row, bits) in glyph.into_iter().flatten().enumerate() {
                for column in (0..CHARACTER).filter(|column| bits >> column & 1 == 1) {
                    self.rectangle(left + column, top + row, 1, 1, colour);
                }
            }
            left += CHARACTER;
        }
    }

    fn cells(&mut self, x: usize, y: usize, cell: (usize, usize), columns: usize, cells: &[Rgb]) {
        for (row, cells) in cells.chunks(columns).enumerate() {
            for (column, &colour) in cells.iter().enumerate() {
                self.rectangle(x + column * cell.0, y + row * cell.1, cell.0, cell.1, colour);
            }
        }
    }
}
