//! What a preprocessed C file uses of what it includes.
//!
//! A file of the kernel is a few hundred lines of its own and tens of thousands of headers, of
//! which it uses one in thirty. [`prune`] leaves out the declarations that nothing in the object
//! can depend on. A compiler makes the same object from the rest in a fraction of the time, and
//! two versions of a header whose difference a file does not use leave it the same text.
//!
//! In C, a declaration acts on others by its names alone. So what is kept is:
//!
//! - all that the compiled file itself declares;
//! - what puts something into the object, unused or not: functions and variables that are not
//!   `static`, attributes such as `used`, assembly, pragmas;
//! - of the rest, every declaration of a name that a kept one mentions, again and again; but what
//!   a member of a structure points to only if something kept accesses a member of that name.
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
mod mention;
mod search;
mod token;

use declaration::split;
use search::kept;
use token::{Kind, Token, Tokens, tokens};

/// Leaves out of a preprocessed C file what its object cannot depend on.
///
/// The outcome does not tell where declarations stand, only which file is compiled. None if the
/// file asks for its place. Any other text has an outcome; what is not C is kept.
#[must_use]
pub fn prune(text: &[u8]) -> Option<Vec<u8>> {
    let Tokens { list, file } = tokens(text);
    if list.iter().any(|token| PLACES.contains(&token.text)) {
        return None;
    }
    let declarations = split(&list);
    let mut made = Vec::with_capacity(text.len() / 3);
    if let Some(file) = file {
        made.extend_from_slice(b"# 1 \"");
        made.extend_from_slice(file);
        made.extend_from_slice(b"\"\n");
    }
    for (declaration, _) in declarations.iter().zip(kept(&declarations)).filter(|(_, kept)| *kept) {
        write(declaration, &mut made);
    }
    Some(made)
}

/// What the place of a declaration can get into an object by.
const PLACES: [&[u8]; 3] = [b"__builtin_LINE", b"__builtin_COLUMN", b"__builtin_FILE"];

/// Writes a declaration to a line of its own: its tokens, apart unless they may be one.
fn write(declaration: &[Token<'_>], made: &mut Vec<u8>) {
    let mut before: Option<&Token<'_>> = None;
    for token in declaration {
        if let Some(before) = before {
            if before.kind == Kind::Directive || token.kind == Kind::Directive {
                made.push(b'\n');
            } else if !before.may_be_one_with(token) {
                made.push(b' ');
            }
        }
        made.extend_from_slice(token.text);
        before = Some(token);
    }
    made.push(b'\n');
}
