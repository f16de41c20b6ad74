//! Numbers in text.

/// The number that `text` begins with and what follows it: 1 to 16 hexadecimal digits.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    if let Some((digits, rest)) = text.split_first_chunk::<16>() {
        let (high, low) = halves(digits);
        // As nearly all are: an address of the highest 4 GiB, where an x86-64 kernel is.
        if high == EIGHT_F && digit_count(low) == 8 {
            return Some((0xffff_ffff << 32 | value(low), rest));
        }
        let (high_count, low_count) = (digit_count(high), digit_count(low));
        if high_count == 8 && low_count == 8 {
            return Some((value(high) << 32 | value(low), rest));
        }
        if high_count == 8 {
            let low_value = value(low.checked_shl(64 - 8 * low_count).unwrap_or_default());
            return Some((
                value(high) << (4 * low_count) | low_value,
                text.get(8 + low_count as usize..)?,
            ));
        }
        if high_count == 0 {
            return None;
        }
        return Some((value(high << (64 - 8 * high_count)), text.get(high_count as usize..)?));
    }
    let mut number = 0;
    let mut rest = text;
    while let Some((digit, after)) = rest.split_first() {
        let Some(digit) = char::from(*digit).to_digit(16) else { break };
        number = number << 4 | u64::from(digit);
        rest = after;
    }
    (rest.len() < text.len()).then_some((number, rest))
}

fn halves(digits: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*digits);
    (both as u64, (both >> 64) as u64)
}

const EIGHT_F: u64 = u64::from_le_bytes(*b"ffffffff");
const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x80 * ONES;

/// How many of the 8 characters, from the first on, are hexadecimal digits.
fn digit_count(text: u64) -> u32 {
    let low = text & !TOPS;
    let letters = low | (0x20 * ONES);
    // Bytes below 0x80, so no sum carries into the next byte; the top bit says "at least".
    let digit = (low + (0x80 - 0x30) * ONES) & !(low + (0x80 - 0x3a) * ONES);
    let letter = (letters + (0x80 - 0x61) * ONES) & !(letters + (0x80 - 0x67) * ONES);
    ((!(digit | letter) | text) & TOPS).trailing_zeros() / 8
}

/// How many of the 8 characters, from the first on, are decimal digits.
pub(crate) fn decimal_digits(text: u64) -> u32 {
    let digits = text ^ (0x30 * ONES); // 0 to 9, and all else more
    ((((digits & !TOPS) + (0x80 - 10) * ONES) | digits) & TOPS).trailing_zeros() / 8
}

/// The number that 8 characters spell, all of them digits or leading zero bytes.
fn value(text: u64) -> u64 {
    // Letters have bit 6 set, and 9 more than their low four bits say.
    let nibbles = (text & (0x0f * ONES)) + 9 * ((text >> 6) & ONES);
    let bytes = (nibbles << 4 | nibbles >> 8) & 0x00ff_00ff_00ff_00ff;
    let words = (bytes << 8 | bytes >> 16) & 0x0000_ffff_0000_ffff;
    (words << 16 | words >> 32) & 0xffff_ffff
}

/// The number that `text` is; `None` if it is none or does not fit.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_read() {
        for length in 1..=16 {
            let digits = &"fedcba9876543210"[16 - length..];
            let expected = u64::from_str_radix(digits, 16).unwrap();
            for after in ["", "/", "g", " 0000000000000000000", ":\u{e9}", "@", "`G"] {
                let text = format!("{digits}{after}");
                let found = hexadecimal(text.as_bytes());
                assert_eq!(found, Some((expected, after.as_bytes())), "{text}");
                let upper = text.to_uppercase();
                assert_eq!(hexadecimal(upper.as_bytes()).map(|found| found.0), Some(expected));
            }
        }
    }

    #[test]
    fn every_character_that_is_no_digit_ends_a_number() {
        for byte in 0..=u8::MAX {
            let is_digit = char::from(byte).is_ascii_hexdigit();
            for position in 0..16 {
                let mut text = *b"0123456789abcdef////";
                text[position] = byte;
                let length = hexadecimal(&text).map_or(0, |(_, rest)| text.len() - rest.len());
                assert_eq!(length, if is_digit { 16 } else { position }, "{byte:#x} at {position}");
            }
        }
    }

    #[test]
    fn decimal_digits_are_counted_up_to_the_first_other_character() {
        for byte in 0..=u8::MAX {
            for position in 0..8 {
                let mut text = *b"09182736";
                text[position] = byte;
                let expected = if byte.is_ascii_digit() { 8 } else { position as u32 };
                assert_eq!(
                    decimal_digits(u64::from_le_bytes(text)),
                    expected,
                    "{byte} at {position}"
                );
            }
        }
    }

    #[test]
    fn decimal_numbers_must_fit() {
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "18446744073709551616", "-1", "1 ", "0x1"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
    }
}
