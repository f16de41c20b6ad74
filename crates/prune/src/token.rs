//! The tokens of a preprocessed C file, and which of them the file itself has.

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

/// A token, and where it is in the preprocessed text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a [u8],
    pub start: usize,
    /// Whether the compiled file has it, not one that it includes.
    pub is_own: bool,
}

impl Token<'_> {
    /// Whether the compiler may take it and the next one as one: `<<`, `L"text"`.
    pub fn may_be_one_with(&self, next: &Self) -> bool {
        let is_operator =
            |token: &Self| token.text.iter().all(|byte| b"!#%&*+-/:<=>^|.".contains(byte));
        self.start + self.text.len() == next.start
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
    /// The name of the compiled file, as line markers write it.
    pub file: Option<&'a [u8]>,
}

/// Splits a text into tokens. Any text has some: what is not C ends up as punctuation.
pub(crate) fn tokens(text: &[u8]) -> Tokens<'_> {
    let mut found = Tokens { list: Vec::with_capacity(text.len() / 6), file: None };
    let (mut start, mut starts_line, mut is_own) = (0, true, true);
    while let Some((rest, first)) = text.get(start..).and_then(|rest| Some((rest, *rest.first()?)))
    {
        if first.is_ascii_whitespace() || first == b'\x0b' {
            starts_line |= first == b'\n';
            start += 1;
            continue;
        }
        let (kind, length) = if starts_line && first == b'#' {
            (Kind::Directive, length_while(rest, |byte| byte != b'\n'))
        } else {
            measure(rest, first)
        };
        starts_line = false;
        let (text, _) = rest.split_at(length);
        if kind == Kind::Directive
            && let Some(name) = line_marker(text)
        {
            // The first one names the compiled file.
            is_own = *found.file.get_or_insert(name) == name;
        } else {
            found.list.push(Token { kind, text, start, is_own });
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

/// The length of a literal up to its closing quote, or to the end of the line.
fn literal(rest: &[u8], quote: u8) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.iter().enumerate().skip(1) {
        if escaped {
            escaped = false;
        } else if *byte == b'\\' {
            escaped = true;
        } else if *byte == quote {
            return at + 1;
        } else if *byte == b'\n' {
            return at;
        }
    }
    rest.len()
}

/// The file of the lines that follow, if a line is `# 12 "file.h" 2`.
fn line_marker(directive: &[u8]) -> Option<&[u8]> {
    let rest = directive.strip_prefix(b"#")?.trim_ascii_start();
    let (digits, rest) = rest.split_at(length_while(rest, |byte| byte.is_ascii_digit()));
    let rest = rest.trim_ascii_start().strip_prefix(b"\"").filter(|_| !digits.is_empty())?;
    rest.get(..rest.iter().rposition(|byte| *byte == b'"')?)
}
