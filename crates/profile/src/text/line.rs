use crate::LineLocation;

/// A line of a text profile.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Function {
        name: &'a str,
        total: u64,
        head: u64,
    },
    Body {
        location: LineLocation,
        count: u64,
        targets: Vec<(&'a str, u64)>,
    },
    Inlined {
        location: LineLocation,
        name: &'a str,
        total: u64,
    },
    Checksum(u64),
    Attributes(u32),
    /// Says that nothing was inlined; of no use to a reader of the whole.
    Flat,
    /// Which tables virtual calls went through; not modelled.
    VirtualTables,
}

/// A line without its end, and how deep it is indented.
pub(super) fn parse(line: &str) -> Result<(usize, Line<'_>), &'static str> {
    let content = line.trim_start_matches(' ');
    let depth = line.len() - content.len();
    let parsed = match content.strip_prefix('!') {
        _ if depth == 0 => function(content),
        Some(metadata) => self::metadata(metadata),
        None => sample(content),
    };
    Ok((depth, parsed?))
}

const FUNCTION: &str = "expected NAME:TOTAL:HEAD";
const IN_CONTEXT: &str = "context-sensitive profiles are not supported: convert it with \
                          llvm-profdata merge --sample --convert-sample-profile-layout=nest";

/// Whether a line is the head of a function, or of one in its context.
pub(super) fn is_function(line: &str) -> bool {
    !line.starts_with(' ') && matches!(function(line), Ok(_) | Err(IN_CONTEXT))
}

fn function(content: &str) -> Result<Line<'_>, &'static str> {
    let (rest, head) = content.rsplit_once(':').ok_or(FUNCTION)?;
    let (name, total) = rest.rsplit_once(':').ok_or(FUNCTION)?;
    if name.is_empty() {
        return Err("the function has no name");
    }
    let total = decimal(total).ok_or(FUNCTION)?;
    let head = decimal(head).ok_or(FUNCTION)?;
    if name.starts_with('[') && name.ends_with(']') {
        return Err(IN_CONTEXT);
    }
    Ok(Line::Function { name, total, head })
}

fn metadata(metadata: &str) -> Result<Line<'_>, &'static str> {
    const CHECKSUM: &str = "expected !CFGChecksum: NUMBER";
    const ATTRIBUTES: &str = "expected !Attributes: NUMBER of 32 bits";
    if let Some(checksum) = metadata.strip_prefix("CFGChecksum:") {
        decimal(checksum.trim()).map(Line::Checksum).ok_or(CHECKSUM)
    } else if let Some(attributes) = metadata.strip_prefix("Attributes:") {
        let attributes = decimal(attributes.trim()).and_then(|number| number.try_into().ok());
        attributes.map(Line::Attributes).ok_or(ATTRIBUTES)
    } else if metadata == "Flat" {
        Ok(Line::Flat)
    } else {
        Err("unknown metadata: expected !CFGChecksum, !Attributes or !Flat")
    }
}

const SAMPLE: &str = "expected OFFSET[.DISCRIMINATOR]: COUNT [TARGET:COUNT]… or CALLEE:TOTAL";

fn sample(content: &str) -> Result<Line<'_>, &'static str> {
    let (text, rest) = content.split_once(':').ok_or(SAMPLE)?;
    let location = location(text)?;
    let rest = rest.strip_prefix(' ').ok_or(SAMPLE)?;
    let (count, targets) = rest.split_once(' ').unwrap_or((rest, ""));
    if let Some(count) = decimal(count) {
        return Ok(Line::Body { location, count, targets: self::targets(targets)? });
    }
    if rest.starts_with("vtables ") {
        return Ok(Line::VirtualTables);
    }
    let (name, total) = rest.rsplit_once(':').ok_or(SAMPLE)?;
    if name.is_empty() {
        return Err("the inlined function has no name");
    }
    Ok(Line::Inlined { location, name, total: decimal(total).ok_or(SAMPLE)? })
}

fn location(text: &str) -> Result<LineLocation, &'static str> {
    let (offset, discriminator) = text.split_once('.').unwrap_or((text, "0"));
    let offset = decimal(offset).ok_or(SAMPLE)?;
    let discriminator = decimal(discriminator).ok_or(SAMPLE)?;
    if offset > u64::from(LineLocation::MAX_OFFSET) {
        return Err("the line offset exceeds 65535");
    }
    Ok(LineLocation {
        offset: offset.try_into().map_err(|_| SAMPLE)?,
        discriminator: discriminator.try_into().map_err(|_| "a discriminator exceeds 32 bits")?,
    })
}

/// `NAME:COUNT` again and again. A name may contain blanks and colons, so it ends at the first
/// colon that a number follows.
fn targets(mut rest: &str) -> Result<Vec<(&str, u64)>, &'static str> {
    let mut targets = Vec::new();
    loop {
        rest = rest.trim_start_matches(' ');
        if rest.is_empty() {
            return Ok(targets);
        }
        let anchor = rest.match_indices(':').find_map(|(colon, _)| {
            let (name, after) = (rest.get(..colon)?, rest.get(colon + 1..)?);
            let (count, after) = after.split_once(' ').unwrap_or((after, ""));
            Some((name, decimal(count)?, after))
        });
        let Some((name, count, after)) = anchor.filter(|(name, ..)| !name.is_empty()) else {
            return Err("expected TARGET:COUNT after the count");
        };
        targets.push((name, count));
        rest = after;
    }
}

/// A decimal number without a sign.
fn decimal(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_blanks_and_colons() {
        let (_, line) = parse(" 3.2: 9 _M<char *>:1000 std::string_view<a<char> >:437").unwrap();
        let targets = vec![("_M<char *>", 1000), ("std::string_view<a<char> >", 437)];
        let location = LineLocation::new(3, 2);
        assert_eq!(line, Line::Body { location, count: 9, targets });
        let (depth, line) = parse("  1: ns::f(int):5").unwrap();
        let location = LineLocation::new(1, 0);
        assert_eq!((depth, line), (2, Line::Inlined { location, name: "ns::f(int)", total: 5 }));
        // A hash in place of a name, which LLVM 22 writes but does not read.
        let (_, line) = parse(" 1: 77:5").unwrap();
        assert_eq!(line, Line::Inlined { location, name: "77", total: 5 });
        let (_, line) = parse("ns::f:5:1").unwrap();
        assert_eq!(line, Line::Function { name: "ns::f", total: 5, head: 1 });
    }

    #[test]
    fn what_is_no_line_is_named() {
        for line in [
            "f",
            "f:1",
            ":1:1",
            "f:x:1",
            "f:1:-1",
            "f:1:",
            "[a:1 @ b]:1:1",
            " 1",
            " 1:",
            " 1:5",
            " x: 5",
            " 1.: 5",
            " 1.x: 5",
            " +1: 5",
            " 65536: 5",
            " 1.4294967296: 5",
            " 1: 18446744073709551616",
            " 1: 5 f",
            " 1: 5 :3",
            " 1: 5 f:x",
            " 1: f",
            " 1: :4",
            " 1: f:x",
            " !What",
            " !CFGChecksum: x",
            " !Attributes: 4294967296",
            " 1:  5",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
