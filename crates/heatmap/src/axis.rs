//! Where an axis has its marks, and what they say.

/// Steps of 1, 2 or 5 times a power of ten, at most `marks` of them within `span`.
pub(crate) fn step(span: f64, marks: usize) -> f64 {
    let least = span / marks.max(1) as f64;
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let decade = 10f64.powf(least.log10().floor());
    let wanted = [1.0, 2.0, 5.0, 10.0].into_iter().find(|&m| m * decade >= least * (1.0 - 1e-9));
    wanted.unwrap_or(10.0) * decade
}

/// A time in nanoseconds, with the unit that suits `step`.
pub(crate) fn time(nanoseconds: f64, step: f64) -> String {
    let (unit, scale) = match step {
        s if s < 1e3 => ("ns", 1.0),
        s if s < 1e6 => ("us", 1e3),
        s if s < 1e8 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let decimals = (-(step / scale).log10().floor()).clamp(0.0, 3.0) as usize;
    format!("{:.*} {unit}", decimals, nanoseconds / scale)
}

/// An amount of bytes, with a binary unit.
pub(crate) fn bytes(amount: u64) -> String {
    match amount {
        0..1024 => format!("{amount} B"),
        1024..1_048_576 => format!("{} KiB", trimmed(amount as f64 / 1024.0)),
        _ => format!("{} MiB", trimmed(amount as f64 / 1_048_576.0)),
    }
}

/// A count, with a decimal unit.
pub(crate) fn count(amount: u64) -> String {
    match amount {
        0..10_000 => amount.to_string(),
        10_000..10_000_000 => format!("{}k", trimmed(amount as f64 / 1e3)),
        10_000_000..10_000_000_000 => format!("{}M", trimmed(amount as f64 / 1e6)),
        _ => format!("{}G", trimmed(amount as f64 / 1e9)),
    }
}

fn trimmed(number: f64) -> String {
    if number >= 100.0 || number.fract() == 0.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        assert_eq!(step(9.7, 10), 1.0);
        assert_eq!(step(11.0, 10), 2.0);
        assert_eq!(step(3.0e9, 8), 5.0e8);
        assert_eq!(step(0.0, 8), 1.0);
    }

    #[test]
    fn a_time_has_the_unit_and_the_digits_of_its_step() {
        assert_eq!(time(1.5e9, 5e8), "1.5 s");
        assert_eq!(time(2e9, 1e9), "2 s");
        assert_eq!(time(40e6, 2e7), "40 ms");
        assert_eq!(time(300.0, 100.0), "300 ns");
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!(bytes(64), "64 B");
        assert_eq!(bytes(40 << 10), "40 KiB");
        assert_eq!(count(9_999), "9999");
        assert_eq!(count(1_234_567), "1235k");
    }
}
