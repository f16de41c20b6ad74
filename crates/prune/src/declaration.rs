//! The declarations of a file: where each ends, and which names it introduces.

use rustc_hash::FxHashSet;

use crate::token::{Kind, Token};

/// Words of C that are not names.
const KEYWORDS: [&str; 53] = [
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "_Bool",
    "_Complex",
    "_Noreturn",
    "_Thread_local",
    "__auto_type",
    "__builtin_va_list",
    "__const",
    "__const__",
    "__extension__",
    "__inline",
    "__inline__",
    "__int128",
    "__restrict",
    "__restrict__",
    "__signed",
    "__signed__",
    "__thread",
    "__volatile",
    "__volatile__",
];

/// Keywords that parentheses follow, in which nothing is declared.
const WITH_ARGUMENT: [&str; 16] = [
    "__attribute__",
    "__attribute",
    "asm",
    "__asm",
    "__asm__",
    "typeof",
    "__typeof",
    "__typeof__",
    "typeof_unqual",
    "__typeof_unqual",
    "__typeof_unqual__",
    "_Alignas",
    "_Alignof",
    "__alignof__",
    "_Static_assert",
    "static_assert",
];

/// Attributes of what is in the object although nothing names it, without underscores.
const KEPT: [&str; 6] = ["used", "constructor", "destructor", "retain", "alias", "ifunc"];

pub(crate) fn is_keyword(word: &[u8]) -> bool {
    is_one_of(&KEYWORDS, word)
}

fn is_one_of(words: &[&str], word: &[u8]) -> bool {
    words.iter().any(|known| known.as_bytes() == word)
}

fn is_asm(word: &[u8]) -> bool {
    matches!(word, b"asm" | b"__asm" | b"__asm__")
}

pub(crate) fn is_assertion(word: &[u8]) -> bool {
    matches!(word, b"_Static_assert" | b"static_assert")
}

pub(crate) fn is_tag_keyword(word: &[u8]) -> bool {
    matches!(word, b"struct" | b"union" | b"enum")
}

pub(crate) fn is_attribute(word: &[u8]) -> bool {
    matches!(word, b"__attribute__" | b"__attribute")
}

/// A word without the underscores around it, by which attributes have two names.
fn bare(word: &[u8]) -> &[u8] {
    word.strip_prefix(b"__").and_then(|rest| rest.strip_suffix(b"__")).unwrap_or(word)
}

/// How deep in parentheses, brackets and braces a token is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Depth {
    parentheses: usize,
    braces: usize,
}

impl Depth {
    const OUTSIDE: Self = Self { parentheses: 0, braces: 0 };

    /// Takes the token in, which is at the depth before if it opens, after if it closes.
    fn pass(&mut self, token: &Token<'_>) {
        if token.kind == Kind::Punctuation {
            match token.text {
                b"(" | b"[" => self.parentheses += 1,
                b")" | b"]" => self.parentheses = self.parentheses.saturating_sub(1),
                b"{" => self.braces += 1,
                b"}" => self.braces = self.braces.saturating_sub(1),
                _ => {}
            }
        }
    }
}

/// The declarations of a file: each with its `;` or its function's body. A directive between two
/// is one by itself.
pub(crate) fn split<'t, 'a>(tokens: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut found = Vec::new();
    let mut rest = tokens;
    while !rest.is_empty() {
        let (declaration, after) = rest.split_at(length(rest));
        found.push(declaration);
        rest = after;
    }
    found
}

fn length(tokens: &[Token<'_>]) -> usize {
    if tokens.first().is_some_and(|token| token.kind == Kind::Directive) {
        return 1;
    }
    let mut depth = Depth::default();
    let (mut is_body, mut initialised, mut type_ends) = (false, false, 0);
    for (at, token) in tokens.iter().enumerate() {
        let before = depth;
        depth.pass(token);
        match token.text {
            _ if at < type_ends => {}
            b"{" if before == Depth::OUTSIDE => is_body = !initialised,
            b"}" if depth == Depth::OUTSIDE && is_body => return at + 1,
            b";" if depth == Depth::OUTSIDE => return at + 1,
            b"=" if depth == Depth::OUTSIDE => initialised = true,
            word if depth == Depth::OUTSIDE && is_tag_keyword(word) => {
                // The braces of a type are passed with it.
                if let Some(open) = Tag::at(tokens, at).body {
                    type_ends = closing(tokens, open) + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

fn word<'a>(tokens: &[Token<'a>], at: usize) -> &'a [u8] {
    tokens.get(at).map_or(b"", |token| token.text)
}

/// Where what `open` opens is closed, or the last token.
fn closing(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = Depth::default();
    for (at, token) in tokens.iter().enumerate().skip(open) {
        depth.pass(token);
        if depth == Depth::OUTSIDE {
            return at;
        }
    }
    tokens.len().saturating_sub(1)
}

/// The first token from `at` on that is not an attribute.
fn after_attributes(tokens: &[Token<'_>], mut at: usize) -> usize {
    while is_attribute(word(tokens, at)) {
        at = closing(tokens, at + 1) + 1;
    }
    at
}

/// What follows `struct`, `union` or `enum`.
pub(crate) struct Tag<'a> {
    /// Where the name is, and the name; None without one.
    name: Option<(usize, &'a [u8])>,
    /// Where the body opens; None without one.
    pub body: Option<usize>,
    /// `struct name;`
    is_alone: bool,
}

impl<'a> Tag<'a> {
    pub fn at(tokens: &[Token<'a>], keyword: usize) -> Self {
        let named = after_attributes(tokens, keyword + 1);
        let name = tokens
            .get(named)
            .filter(|token| token.kind == Kind::Word)
            .map(|token| (named, token.text));
        let next = after_attributes(tokens, named + usize::from(name.is_some()));
        Self {
            name,
            body: (word(tokens, next) == b"{").then_some(next),
            is_alone: keyword == 0 && word(tokens, next) == b";",
        }
    }
}

/// Types that a compiler may know by itself.
const KNOWN_TYPES: [&str; 3] = ["bool", "__int128_t", "__uint128_t"];

/// What has been declared so far, which decides how C reads the next declaration.
pub(crate) struct Scope<'a> {
    types: FxHashSet<&'a [u8]>,
    tags: FxHashSet<&'a [u8]>,
}

/// What a declaration introduces. A name too many only keeps a declaration that nothing needs.
#[derive(Default)]
pub(crate) struct Introduced<'a> {
    /// Functions, variables, types and enumeration constants.
    pub names: Vec<&'a [u8]>,
    /// Of structures, unions and enumerations.
    pub tags: Vec<&'a [u8]>,
    /// Whether it is in the object, or acts on what is, although nothing names it.
    pub is_kept: bool,
    /// Whether it only says what is true of others.
    pub is_assertion: bool,
}

/// What the specifiers and declarators of a declaration say.
#[derive(Default)]
struct Specifiers {
    is_type: bool,
    is_static: bool,
    is_extern: bool,
    is_inline: bool,
    /// By GNU's old rules: `extern inline` makes no function.
    is_gnu_inline: bool,
    is_initialised: bool,
    has_variable: bool,
}

impl Specifiers {
    fn take(&mut self, keyword: &[u8]) {
        match keyword {
            b"typedef" => self.is_type = true,
            b"static" => self.is_static = true,
            b"extern" => self.is_extern = true,
            b"inline" | b"__inline" | b"__inline__" => self.is_inline = true,
            _ => {}
        }
    }

    /// Whether the object has a function or variable of it, used or not.
    fn is_in_the_object(&self, has_body: bool) -> bool {
        if self.is_static || self.is_type {
            false
        } else if has_body {
            !(self.is_extern && self.is_inline && self.is_gnu_inline)
        } else {
            self.is_initialised || self.has_variable && !self.is_extern
        }
    }
}

impl<'a> Scope<'a> {
    pub fn new() -> Self {
        let types = KNOWN_TYPES.map(str::as_bytes).into_iter().collect();
        Self { types, tags: FxHashSet::default() }
    }

    /// Reads the next declaration of the file.
    pub fn introduce(&mut self, tokens: &[Token<'a>]) -> Introduced<'a> {
        let mut found = Introduced::default();
        let mut said = Specifiers::default();
        let mut depth = Depth::default();
        // Of the declarator that is being read.
        let (mut has_name, mut in_value) = (false, false);
        let (mut tag_at, mut argument_ends) = (usize::MAX, 0);
        let mut constants = 0..0; // where those of an enumeration are
        for (at, token) in tokens.iter().enumerate() {
            let before = depth;
            depth.pass(token);
            let outside = before == Depth::OUTSIDE && at >= argument_ends;
            match (token.kind, token.text) {
                (Kind::Directive, _) => found.is_kept |= at == 0,
                (Kind::Punctuation, b"=") if outside => {
                    (in_value, said.is_initialised) = (true, true);
                }
                (Kind::Punctuation, b",") if outside => (has_name, in_value) = (false, false),
                (Kind::Punctuation, b"(") if outside && !in_value && !has_name => {
                    if let Some(name) = self.in_parentheses(tokens, at) {
                        found.names.push(name);
                        (has_name, said.has_variable) = (true, true);
                    }
                }
                (Kind::Word, keyword) if is_tag_keyword(keyword) => {
                    let tag = Tag::at(tokens, at);
                    if let Some((named, name)) = tag.name {
                        tag_at = named;
                        let is_new = !self.tags.contains(name);
                        if is_new || tag.body.is_some() || tag.is_alone {
                            found.tags.push(name);
                        }
                        // In a list of parameters it is declared for the list alone.
                        if is_new && (tag.body.is_some() || before.parentheses == 0) {
                            self.tags.insert(name);
                        }
                    }
                    if let Some(open) = tag.body.filter(|_| keyword == b"enum") {
                        constants = open..closing(tokens, open);
                    }
                }
                (Kind::Word, name) if at != tag_at => {
                    if constants.contains(&at) {
                        if matches!(word(tokens, at - 1), b"{" | b",") {
                            found.names.push(name);
                        }
                    } else if !outside || in_value {
                        // A parameter, a member or a use.
                    } else if is_one_of(&WITH_ARGUMENT, name) {
                        argument_ends = closing(tokens, at + 1) + 1;
                        found.is_kept |= at == 0 && is_asm(name);
                        found.is_assertion |= at == 0 && is_assertion(name);
                        for token in tokens.iter().take(argument_ends).skip(at) {
                            found.is_kept |=
                                is_attribute(name) && is_one_of(&KEPT, bare(token.text));
                            said.is_gnu_inline |= bare(token.text) == b"gnu_inline";
                        }
                    } else if is_keyword(name) {
                        said.take(name);
                    } else {
                        let next = word(tokens, at + 1);
                        let is_type = || match next {
                            b"(" => self.in_parentheses(tokens, at + 1).is_some(),
                            _ => !ends_a_declarator(next),
                        };
                        if !(self.types.contains(name) && is_type()) {
                            found.names.push(name);
                            has_name = true;
                            said.has_variable |= next != b"(";
                        }
                    }
                }
                _ => {}
            }
        }
        if said.is_type {
            self.types.extend(&found.names);
        }
        let has_body = tokens.last().is_some_and(|token| token.text == b"}");
        found.is_kept |= said.is_in_the_object(has_body);
        found
    }

    /// The name that parentheses declare: `(*name)` or `(name)`.
    fn in_parentheses(&self, tokens: &[Token<'a>], open: usize) -> Option<&'a [u8]> {
        let (mut named, mut is_pointer) = (open, false);
        loop {
            named = after_attributes(tokens, named + 1);
            match word(tokens, named) {
                b"*" => is_pointer = true,
                b"(" => {}
                keyword if is_keyword(keyword) => {}
                _ => break,
            }
        }
        let token = tokens.get(named).filter(|token| token.kind == Kind::Word)?;
        let is_alone = word(tokens, named + 1) == b")" && !self.types.contains(token.text);
        (is_pointer || is_alone).then_some(token.text)
    }
}

fn ends_a_declarator(next: &[u8]) -> bool {
    matches!(next, b";" | b"," | b"=" | b"[") || is_one_of(&WITH_ARGUMENT, next)
}
