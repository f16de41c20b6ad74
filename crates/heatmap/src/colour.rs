//! From counts to colours.

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];

pub(crate) const PAPER: Rgb = [255, 255, 255];
pub(crate) const INK: Rgb = [32, 32, 32];
pub(crate) const FAINT: Rgb = [150, 150, 150];
/// Where nothing ran.
const COLD: Rgb = [18, 18, 28];

/// From one visit to the most: lightness grows all the way, so that the order is seen in grey
/// and by people who see few colours.
const RAMP: [Rgb; 6] =
    [[48, 38, 92], [106, 40, 124], [172, 52, 112], [226, 92, 72], [250, 164, 64], [252, 250, 190]];

/// The colour of `count`, where `most` is the largest one: by its logarithm, since a few lines of
/// a kernel run a thousand times as often as most.
pub(crate) fn colour(count: u64, most: u64) -> Rgb {
    if count == 0 {
        return COLD;
    }
    ramp(position(count, most))
}

/// Where `count` is between one (0) and `most` (1).
pub(crate) fn position(count: u64, most: u64) -> f64 {
    if most <= 1 { 1.0 } else { (count.max(1) as f64).ln() / (most as f64).ln() }
}

/// The colour at a position from 0 to 1.
pub(crate) fn ramp(position: f64) -> Rgb {
    let along = position.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let below = (along as usize).min(RAMP.len() - 2);
    let part = along - below as f64;
    match RAMP.get(below..below + 2) {
        Some([low, high]) => {
            let mixed = |(&low, &high): (&u8, &u8)| {
                (f64::from(low) + (f64::from(high) - f64::from(low)) * part).round() as u8
            };
            let mut channels = low.iter().zip(high).map(mixed);
            [(); 3].map(|()| channels.next().unwrap_or_default())
        }
        _ => COLD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_visits_are_lighter() {
        let light = |count| {
            let [r, g, b] = colour(count, 1_000_000).map(u32::from);
            299 * r + 587 * g + 114 * b
        };
        let counts = [0, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000];
        assert!(counts.windows(2).all(|pair| light(pair[0]) < light(pair[1])));
    }

    #[test]
    fn the_most_is_the_lightest_however_few_it_is() {
        for most in [1, 2, u64::MAX] {
            assert_eq!(colour(most, most), RAMP[5]);
        }
    }
}
