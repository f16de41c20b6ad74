//! The tokens of a preprocessed C file, and where each was written.

use rustc_hash::FxHashMap;

/// What a token is, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    Number,
    /// A string or character literal, without its prefix.
    Literal,
    Punctuation,
    /// A whole line that the preprocessor passed on: `#pragma`, `#ident`.
    Directive,
}

/// A token, with its place in the preprocessed text and in the source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a [u8],
    pub start: usize,
    pub line: usize,
    /// A number in [`Tokens::files`].
    pub file: usize,
}

impl Token<'_> {
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether the compiler may take it and the next one as one: `<<`, `L"text"`.
    pub fn may_be_one_with(&self, next: &Self) -> bool {
        let is_operator =
            |token: &Self| token.text.iter().all(|byte| b"!#%&*+-/:<=>^|.".contains(byte));
        self.end() == next.start
            && match next.kind {
                Kind::Literal => self.kind == Kind::Word,
                Kind::Punctuation => is_operator(self) && is_operator(next),
                _ => false,
            }
    }
}

/// What [`tokens`] found.
pub(crate) struct Tokens<'a> {
    pub list: Vec<Token<'a>>,
    /// Names of source files, as line markers write them; the first is the compiled file.
    pub files: Vec<&'a [u8]>,
}

/// Splits a text into tokens. Any text has some: what is not C ends up as punctuation.
pub(crate) fn tokens(text: &[u8]) -> Tokens<'_> {
    let mut found = Tokens { list: Vec::with_capacity(text.len() / 6), files: Vec::new() };
    let mut numbers: FxHashMap<&[u8], usize> = FxHashMap::default();
    let (mut line, mut file, mut fresh, mut start) = (1, 0, true, 0);
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let first = rest.first().copied().unwrap_or_default();
        if first.is_ascii_whitespace() || first == b'\x0b' {
            if first == b'\n' {
                line += 1;
                fresh = true;
            }
            start += 1;
            continue;
        }
        let (kind, length) = if fresh && first == b'#' {
            (Kind::Directive, length_while(rest, |byte| byte != b'\n'))
        } else {
            measure(rest, first)
        };
        fresh = false;
        let (text, _) = rest.split_at(length);
        if kind == Kind::Directive
            && let Some((next_line, name)) = line_marker(text)
        {
            // The line that follows is `next_line`, and the end of this one is counted before.
            line = next_line.wrapping_sub(1);
            if let Some(name) = name {
                file = *numbers.entry(name).or_insert_with(|| {
                    found.files.push(name);
                    found.files.len() - 1
                });
            }
        } else {
            found.list.push(Token { kind, text, start, line, file });
            line += text.iter().filter(|byte| **byte == b'\n').count();
        }
        start += length;
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

fn length_while(text: &[u8], accepts: impl Fn(u8) -> bool) -> usize {
    text.iter().position(|byte| !accepts(*byte)).unwrap_or(text.len())
}

/// The kind and length of the token that `rest` starts with.
fn measure(rest: &[u8], first: u8) -> (Kind, usize) {
    let second = rest.get(1).copied().unwrap_or_default();
    if first.is_ascii_digit() || (first == b'.' && second.is_ascii_digit()) {
        let mut before = first;
        let length = rest.iter().position(|byte| {
            let sign = matches!(byte, b'+' | b'-') && matches!(before, b'e' | b'E' | b'p' | b'P');
            before = *byte;
            !(is_word(*byte) || *byte == b'.' || sign)
        });
        let length = length.unwrap_or(rest.len());
        (Kind::Number, length)
    } else if is_word(first) {
        (Kind::Word, length_while(rest, is_word))
    } else if matches!(first, b'"' | b'\'') {
        (Kind::Literal, literal(rest, first))
    } else if rest.starts_with(b"...") {
        (Kind::Punctuation, 3)
    } else if rest.starts_with(b"->") {
        (Kind::Punctuation, 2)
    } else {
        (Kind::Punctuation, 1)
    }
}

/// The length of a literal up to its closing quote, or of all that is left.
fn literal(rest: &[u8], quote: u8) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.iter().enumerate().skip(1) {
        if escaped {
            escaped = false;
        } else if *byte == b'\\' {
            escaped = true;
        } else if *byte == quote {
            return at + 1;
        }
    }
    rest.len()
}

/// The line and file that follow, if a line is `# 12 "file.h" 2` or `#line 12 "file.h"`.
fn line_marker(directive: &[u8]) -> Option<(usize, Option<&[u8]>)> {
    let rest = directive.strip_prefix(b"#")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"line").unwrap_or(rest).trim_ascii_start();
    let (digits, rest) = rest.split_at(length_while(rest, |byte| byte.is_ascii_digit()));
    let line = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let name = rest.trim_ascii_start().strip_prefix(b"\"").and_then(|rest| {
        let end = rest.iter().rposition(|byte| *byte == b'"')?;
        rest.get(..end)
    });
    Some((line, name))
}
