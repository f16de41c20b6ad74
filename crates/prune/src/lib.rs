//! What a preprocessed C file uses of what it includes.
//!
//! A file of the kernel is a few thousand lines of its own and a hundred thousand of headers, of
//! which it uses a fifth. [`prune`] leaves out the declarations that nothing in the object can
//! depend on. A compiler makes the same object from the rest in half the time, and two versions
//! of a header whose difference a file does not use leave it the same text.
//!
//! In C, a declaration acts on others by its names alone. So what is kept is:
//!
//! - all that the compiled file itself declares;
//! - what puts something into the object, unused or not: functions and variables that are not
//!   `static`, attributes such as `used`, assembly, assertions, pragmas;
//! - of the rest, every declaration of a name that a kept one mentions, again and again.
//!
//! Nothing is parsed: only where a declaration ends and which names it introduces is found out,
//! so compilers' extensions are no obstacle. Where that is in doubt, more is kept. Should a
//! declaration be missed, the rest does not compile; it does not compile to something else.
//!
//! The idea of leaving out what a file does not use is by Yu, Dayani-Fard and Mylopoulos
//! (*Removing false code dependencies to speedup software build processes*, CASCON 2003), and of
//! recognising by it that a file need not be compiled again by Dietrich et al. (*cHash: detection
//! of redundant compilations via AST hashing*, USENIX ATC 2017).

mod declaration;
mod token;

use rustc_hash::FxHashMap;

use declaration::{Introduced, Scope, is_tag_keyword, split};
use token::{Kind, Token, Tokens, tokens};

/// Leaves out of a preprocessed C file what its object cannot depend on.
///
/// With `lines`, every declaration stays at its line of its file, as debug information wants it.
/// Without, only the name of the compiled file is kept, and the text does not depend on where
/// declarations stand, unless it asks for its place. Any text has an outcome; what is not C is
/// kept.
#[must_use]
pub fn prune(text: &[u8], lines: bool) -> Vec<u8> {
    let Tokens { list, files } = tokens(text);
    let declarations = split(&list);
    let kept = kept(&declarations);
    let lines = lines || list.iter().any(|token| PLACES.contains(&token.text));
    let mut output = Output::new(text, &files, lines);
    for (declaration, _) in declarations.iter().zip(kept).filter(|(_, is_kept)| *is_kept) {
        output.add(declaration);
    }
    output.finish()
}

/// What the place of a declaration can get into an object by.
const PLACES: [&[u8]; 3] = [b"__builtin_LINE", b"__builtin_COLUMN", b"__builtin_FILE"];

/// The declarations of a name.
type Index<'a> = FxHashMap<&'a [u8], Vec<usize>>;

/// Which declarations are kept.
fn kept(declarations: &[&[Token<'_>]]) -> Vec<bool> {
    let (mut names, mut tags) = (Index::default(), Index::default());
    let mut scope = Scope::new();
    let mut waiting = Vec::new();
    for (number, declaration) in declarations.iter().enumerate() {
        let Introduced { names: own_names, tags: own_tags, is_kept } = scope.introduce(declaration);
        for (index, own) in [(&mut names, own_names), (&mut tags, own_tags)] {
            for name in own {
                index.entry(name).or_default().push(number);
            }
        }
        if is_kept || declaration.first().is_some_and(|token| token.file == 0) {
            waiting.push(number);
        }
    }
    let mut kept = vec![false; declarations.len()];
    while let Some(number) = waiting.pop() {
        if let Some(is_kept) = kept.get_mut(number)
            && !std::mem::replace(is_kept, true)
        {
            let mentioned = declarations.get(number).copied().unwrap_or_default();
            mention(mentioned, &names, &tags, |found| waiting.extend(found));
        }
    }
    kept
}

/// Calls `found` with the declarations of every name that a declaration mentions.
fn mention<'a>(
    declaration: &[Token<'a>],
    names: &Index<'a>,
    tags: &Index<'a>,
    mut found: impl FnMut(&[usize]),
) {
    let mut look = |index: &Index<'a>, name: &'a [u8]| {
        if let Some(numbers) = index.get(name) {
            found(numbers);
        }
    };
    let mut before: &[u8] = b"";
    for token in declaration {
        match token.kind {
            // Members have names of their own.
            Kind::Word if matches!(before, b"." | b"->") => {}
            Kind::Word if is_tag_keyword(before) => look(tags, token.text),
            Kind::Word => {
                look(names, token.text);
                if let Some(function) = token.text.strip_prefix(b"__builtin_") {
                    look(names, function);
                }
                if before == b")" {
                    look(tags, token.text); // after an attribute
                }
            }
            // `alias("name")`
            Kind::Literal if before == b"(" => {
                if let [_, name @ .., _] = token.text {
                    look(names, name);
                }
            }
            _ => {}
        }
        before = token.text;
    }
}

/// A preprocessed file in the making.
struct Output<'a> {
    text: &'a [u8],
    files: &'a [&'a [u8]],
    lines: bool,
    made: Vec<u8>,
    /// The file and line where the output is.
    place: (usize, usize),
}

/// More lines than these are skipped by a line marker.
const FEW_LINES: usize = 8;

impl<'a> Output<'a> {
    fn new(text: &'a [u8], files: &'a [&'a [u8]], lines: bool) -> Self {
        let made = Vec::with_capacity(text.len() / 3);
        let mut output = Self { text, files, lines, made, place: (0, 1) };
        output.mark(0, 1); // names the compiled file
        output
    }

    fn finish(mut self) -> Vec<u8> {
        self.start_line();
        self.made
    }

    fn start_line(&mut self) {
        if self.made.last().is_some_and(|byte| *byte != b'\n') {
            self.made.push(b'\n');
        }
    }

    /// Says where what follows is from.
    fn mark(&mut self, file: usize, line: usize) {
        if let Some(name) = self.files.get(file) {
            self.start_line();
            self.made.extend_from_slice(format!("# {line} \"").as_bytes());
            self.made.extend_from_slice(name);
            self.made.extend_from_slice(b"\"\n");
        }
        self.place = (file, line);
    }

    fn add(&mut self, declaration: &[Token<'a>]) {
        if self.lines {
            self.add_in_place(declaration);
        } else {
            self.add_tokens(declaration);
        }
    }

    /// Copies the text between the first and the last token, where line markers may be, too.
    fn add_in_place(&mut self, declaration: &[Token<'a>]) {
        let (Some(first), Some(last)) = (declaration.first(), declaration.last()) else { return };
        let (file, line) = self.place;
        let is_near = first.file == file && (line..=line + FEW_LINES).contains(&first.line);
        if first.kind == Kind::Directive || !is_near {
            self.mark(first.file, first.line);
        } else {
            self.made.extend(std::iter::repeat_n(b'\n', first.line - line));
        }
        self.made.extend_from_slice(self.text.get(first.start..last.end()).unwrap_or_default());
        self.place = (last.file, last.line);
        if last.kind == Kind::Directive {
            self.made.push(b'\n');
            self.place.1 += 1;
        } else {
            self.made.push(b' ');
        }
    }

    /// Writes the tokens, apart unless they may be one.
    fn add_tokens(&mut self, declaration: &[Token<'a>]) {
        let mut before: Option<&Token<'_>> = None;
        for token in declaration {
            if token.kind == Kind::Directive {
                self.start_line();
            } else if before.is_some_and(|before| !before.may_be_one_with(token)) {
                self.made.push(b' ');
            }
            self.made.extend_from_slice(token.text);
            if token.kind == Kind::Directive {
                self.start_line();
            }
            before = Some(token).filter(|token| token.kind != Kind::Directive);
        }
        self.start_line();
    }
}
