use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::line::{self, Line};
use crate::name::parse_guid;
use crate::{FunctionProfile, LineLocation, MAX_INLINE_DEPTH, Profile, ReadError};

/// Whether the first line of `bytes` that says something is the head of a function, also of one in
/// its context, which [`read`] refuses.
pub fn is_text(bytes: &[u8]) -> bool {
    let first = bytes.split(|&byte| byte == b'\n').find_map(|line| {
        let line = without_return(line);
        (!is_skipped(line)).then_some(line)
    });
    let first = first.and_then(|line| std::str::from_utf8(line).ok());
    first.is_some_and(line::is_function)
}

/// Reads a text profile.
///
/// Functions, locations and calls that stand there twice are added up. A profile whose functions
/// are all decimal numbers has MD5 names. As text cannot say so, discriminators are never taken as
/// flow-sensitive; a caller who knows better sets [`Profile::flow_sensitive`].
///
/// # Errors
/// The first line that is wrong, and why.
pub fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let line = without_return(line);
        if !is_skipped(line) {
            reader.line(line).map_err(|what| ReadError::Line { line: number, what })?;
        }
    }
    reader.finish()
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_skipped(line: &[u8]) -> bool {
    line.iter().find(|&&byte| byte != b' ').is_none_or(|&first| first == b'#')
}

#[derive(Default)]
struct Reader {
    profile: Profile,
    names: FxHashSet<Arc<str>>,
    /// The function being read and the calls inlined into each other up to the last line.
    open: Vec<Open>,
    functions: usize,
    functions_with_checksum: usize,
    calls_with_checksum: usize,
}

struct Open {
    location: LineLocation,
    name: Arc<str>,
    profile: FunctionProfile,
    /// Metadata came, which stands at the end.
    closed: bool,
    has_checksum: bool,
}

impl Reader {
    fn line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let line = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
        let (depth, line) = line::parse(line)?;
        self.close_to(depth);
        if let Line::Function { name, total, head } = line {
            let name = self.name(name);
            self.functions += 1;
            let profile = FunctionProfile { total, head, ..FunctionProfile::default() };
            self.open.push(Open {
                location: LineLocation::default(),
                name,
                profile,
                closed: false,
                has_checksum: false,
            });
            return Ok(());
        }
        if self.open.len() < depth {
            return Err("indented too deep");
        }
        if let Line::Inlined { location, name, total } = line {
            if depth > MAX_INLINE_DEPTH {
                return Err("inlined calls nest deeper than 256");
            }
            self.open_function()?;
            let name = self.name(name);
            let profile = FunctionProfile { total, ..FunctionProfile::default() };
            self.open.push(Open { location, name, profile, closed: false, has_checksum: false });
            return Ok(());
        }
        match line {
            Line::Body { location, count, targets } => {
                self.open_function()?.add_line(location, count);
                for (target, count) in targets {
                    let target = self.name(target);
                    self.open_function()?.line_mut(location).add_target(&target, count);
                }
            }
            Line::Checksum(checksum) => {
                if let Some(open) = self.open.last_mut() {
                    open.profile.checksum = (checksum != 0).then_some(checksum);
                    open.closed = true;
                    open.has_checksum = true;
                }
            }
            Line::Attributes(attributes) => {
                if let Some(open) = self.open.last_mut() {
                    open.profile.attributes = attributes;
                    open.closed = true;
                }
            }
            Line::Flat | Line::VirtualTables | Line::Function { .. } | Line::Inlined { .. } => {}
        }
        Ok(())
    }

    /// The function that a line of samples belongs to.
    fn open_function(&mut self) -> Result<&mut FunctionProfile, &'static str> {
        match self.open.last_mut() {
            Some(open) if open.closed => Err("samples after the metadata of their function"),
            Some(open) => Ok(&mut open.profile),
            None => Err("samples before any function"),
        }
    }

    /// Ends what is open beyond `depth`, adding each to what it was inlined into.
    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some(Open { location, name, profile, has_checksum, .. }) = self.open.pop() else {
                return;
            };
            let functions = match self.open.last_mut() {
                Some(caller) => {
                    self.calls_with_checksum += usize::from(has_checksum);
                    caller.profile.inlined.entry(location).or_default()
                }
                None => {
                    self.functions_with_checksum += usize::from(has_checksum);
                    &mut self.profile.functions
                }
            };
            match functions.get_mut(&name) {
                Some(present) => {
                    // Not the same control flow, but the same entry: the last checksum stays.
                    present.checksum = profile.checksum.or(present.checksum);
                    let checksum = present.checksum;
                    present.attributes = profile.attributes;
                    present.merge(&FunctionProfile { checksum, ..profile }, 1);
                }
                None => {
                    functions.insert(name, profile);
                }
            }
        }
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(name) = self.names.get(name) {
            return Arc::clone(name);
        }
        let name: Arc<str> = Arc::from(name);
        self.names.insert(Arc::clone(&name));
        name
    }

    fn finish(mut self) -> Result<Profile, ReadError> {
        self.close_to(0);
        let mut profile = self.profile;
        profile.probe_based = self.functions_with_checksum > 0;
        let checksums = self.functions_with_checksum + self.calls_with_checksum;
        if checksums > 0 && self.functions_with_checksum != self.functions {
            return Err(ReadError::Unsupported {
                format: crate::Format::Text,
                what: "mixes functions with a CFG checksum, which have probes, and without",
            });
        }
        profile.md5_names = !profile.functions.is_empty()
            && profile.functions.keys().all(|name| parse_guid(name).is_some());
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(profile: &str, expected_line: usize, words: &str) {
        match read(profile.as_bytes()) {
            Err(ReadError::Line { line, what }) => {
                assert_eq!(line, expected_line, "{what}");
                assert!(what.contains(words), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn comments_blank_lines_and_returns_are_let_pass() {
        let text = "# made\n\nf:3:1\r\n  # inside\n 1: 2\r\n   \n 2: 1\n";
        let profile = read(text.as_bytes()).unwrap();
        let lines: Vec<_> = profile.functions["f"].body.values().map(|line| line.count).collect();
        assert_eq!(lines, [2, 1]);
    }

    #[test]
    fn what_stands_there_twice_is_added_up() {
        let text =
            "f:5:1\n 1: 2 g:2\n 1: 3 g:1 h:1\n 2: i:4\n  1: 4\n 2: i:6\n  1: 6\nf:5:1\n 1: 1\n";
        let profile = read(text.as_bytes()).unwrap();
        let function = &profile.functions["f"];
        assert_eq!((function.total, function.head), (10, 2));
        let line = &function.body[&LineLocation::new(1, 0)];
        assert_eq!((line.count, line.targets["g"], line.targets["h"]), (6, 3, 1));
        let inlined = &function.inlined[&LineLocation::new(2, 0)]["i"];
        assert_eq!((inlined.total, inlined.own_count()), (10, 10));
    }

    #[test]
    fn counts_saturate() {
        let text = "f:18446744073709551615:1\n 1: 18446744073709551615\n 1: 1\nf:1:1\n";
        let function = &read(text.as_bytes()).unwrap().functions["f"];
        assert_eq!(function.total, u64::MAX);
        assert_eq!(function.own_count(), u64::MAX);
    }

    #[test]
    fn metadata_ends_a_function() {
        fails("f:1:1\n !CFGChecksum: 5\n 1: 1\n", 3, "after the metadata");
        let text =
            "f:1:1\n 1: g:1\n  1: 1\n  !CFGChecksum: 7\n  !Attributes: 3\n !CFGChecksum: 5\n";
        let profile = read(text.as_bytes()).unwrap();
        assert!(profile.probe_based);
        assert_eq!(profile.functions["f"].checksum, Some(5));
        let inlined = &profile.functions["f"].inlined[&LineLocation::new(1, 0)]["g"];
        assert_eq!((inlined.checksum, inlined.attributes), (Some(7), 3));
    }

    #[test]
    fn wrong_lines_are_named_by_their_number() {
        fails(" 1: 2\n", 1, "too deep");
        fails("f:1:1\n\n   1: 2\n", 3, "too deep");
        fails("f:1:1\n 1: 2\nf:1\n", 3, "NAME:TOTAL:HEAD");
        let mut nested = String::from("f:1:1\n");
        for depth in 1..=MAX_INLINE_DEPTH + 1 {
            nested.push_str(&format!("{:depth$}1: f:1\n", ""));
        }
        fails(&nested, MAX_INLINE_DEPTH + 2, "256");
    }

    #[test]
    fn half_a_probe_profile_is_refused() {
        let text = "f:1:1\n 1: 1\n !CFGChecksum: 5\ng:1:1\n 1: 1\n";
        assert!(matches!(read(text.as_bytes()), Err(ReadError::Unsupported { .. })));
        let text = "f:1:1\n 1: g:1\n  1: 1\n  !CFGChecksum: 5\n";
        assert!(matches!(read(text.as_bytes()), Err(ReadError::Unsupported { .. })));
    }

    #[test]
    fn an_unknown_checksum_is_one_too() {
        let text = "f:1:1\n 1: 1\n !CFGChecksum: 0\n !CFGChecksum: 0\n";
        let profile = read(text.as_bytes()).unwrap();
        assert!(profile.probe_based);
        assert_eq!(profile.functions["f"].checksum, None);
    }

    #[test]
    fn decimal_names_are_guids() {
        assert!(read(b"123:1:1\n 1: 1 9:1\n").unwrap().md5_names);
        assert!(!read(b"123:1:1\n 1: 1\nf:1:1\n").unwrap().md5_names);
        assert!(!read(b"").unwrap().md5_names);
    }

    #[test]
    fn text_is_told_by_its_first_line() {
        assert!(is_text(b"# c\nf:1:1\n"));
        for no in [&b""[..], b" 1: 1\n", b"\x00\x01", b"f\n", b"#only\n", b"{\"a\": [1:2]}\n"] {
            assert!(!is_text(no), "{no:?}");
        }
    }
}
