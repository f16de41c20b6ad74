//! What a declaration mentions.

use crate::declaration::{Tag, is_assertion, is_attribute, is_keyword, is_tag_keyword};
use crate::token::{Kind, Token};

/// The names that a declaration mentions. A name too many only keeps a declaration that nothing
/// needs.
#[derive(Default)]
pub(crate) struct Mentions<'a> {
    /// Functions, variables, types and enumeration constants.
    pub names: Vec<&'a [u8]>,
    /// Structures, unions and enumerations.
    pub tags: Vec<&'a [u8]>,
    /// Members, of whatever structure.
    pub accessed: Vec<&'a [u8]>,
    /// The declaration's own members, with the structures that they point to. A structure has the
    /// same layout whether these are known or not.
    pub members: Vec<(&'a [u8], &'a [u8])>,
}

pub(crate) fn mentions<'a>(declaration: &[Token<'a>]) -> Mentions<'a> {
    let mut found = Mentions::default();
    let mut before: &[u8] = b"";
    let mut around = Around::default();
    let is_plain = !declaration.first().is_some_and(|token| is_assertion(token.text));
    for (at, token) in declaration.iter().enumerate() {
        around.pass(declaration, at);
        match token.kind {
            Kind::Word if matches!(before, b"." | b"->") => found.accessed.push(token.text),
            Kind::Word if is_tag_keyword(before) => {
                if around.is_record() && is_pointed_to(declaration, at) {
                    found.members.extend(names_of_member(declaration, at).map(|m| (m, token.text)));
                } else {
                    found.tags.push(token.text);
                }
            }
            Kind::Word if is_plain && around.is_list() && is_declared(declaration, at) => {}
            Kind::Word => {
                found.names.push(token.text);
                found.names.extend(token.text.strip_prefix(b"__builtin_"));
                if before == b")" {
                    found.tags.push(token.text); // after an attribute
                }
            }
            // `alias("name")`
            Kind::Literal if before == b"(" => {
                if let [_, name @ .., _] = token.text {
                    found.names.push(name);
                }
            }
            _ => {}
        }
        before = token.text;
    }
    found
}

/// What is around a token.
#[derive(Default)]
struct Around {
    /// Of each open brace, whether it is that of a structure or union.
    braces: Vec<bool>,
    parentheses: usize,
    /// Whether it is a value, outside of braces.
    in_value: bool,
    /// Where the next structure or union opens.
    opens: Option<usize>,
}

impl Around {
    /// Takes a token in, in turn.
    fn pass(&mut self, tokens: &[Token<'_>], at: usize) {
        match tokens.get(at).map_or(&b""[..], |token| token.text) {
            b"struct" | b"union" => self.opens = Tag::at(tokens, at).body.or(self.opens),
            b"{" => self.braces.push(self.opens == Some(at)),
            b"}" => {
                self.braces.pop();
            }
            b"(" => self.parentheses += 1,
            b")" => self.parentheses = self.parentheses.saturating_sub(1),
            b"=" if self.braces.is_empty() && self.parentheses == 0 => self.in_value = true,
            b"," if self.braces.is_empty() && self.parentheses == 0 => self.in_value = false,
            _ => {}
        }
    }

    /// Whether members are declared here.
    fn is_record(&self) -> bool {
        !self.braces.is_empty() && self.declares()
    }

    /// Whether members or parameters may be declared here.
    fn is_list(&self) -> bool {
        (!self.braces.is_empty() || self.parentheses > 0) && self.declares()
    }

    /// Whether this is neither code nor a value.
    fn declares(&self) -> bool {
        !self.in_value && self.braces.iter().all(|is_record| *is_record)
    }
}

/// Whether a member or a parameter is declared by this name: a type is before it, what ends a
/// declarator is after it; or it is `(*name)`.
fn is_declared(tokens: &[Token<'_>], at: usize) -> bool {
    let (before, after) = tokens.split_at(at);
    let next = after.get(1).map_or(&b""[..], |token| token.text);
    let mut before = before.iter().rev();
    let stars = before.clone().take_while(|token| token.text == b"*").count();
    match before.nth(stars) {
        Some(token) if token.kind == Kind::Word && !is_qualifier(token.text) => {
            matches!(next, b";" | b"," | b")" | b"[" | b":") || is_attribute(next)
        }
        Some(token) => token.text == b"(" && stars > 0 && next == b")",
        None => false,
    }
}

fn is_qualifier(word: &[u8]) -> bool {
    matches!(word, b"const" | b"volatile" | b"register" | b"restrict" | b"__restrict")
        || is_tag_keyword(word)
}

/// Whether a pointer follows a tag: `struct tag *`.
fn is_pointed_to(tokens: &[Token<'_>], tag: usize) -> bool {
    tokens
        .iter()
        .skip(tag + 1)
        .find(|token| !matches!(token.text, b"const" | b"volatile"))
        .is_some_and(|token| token.text == b"*")
}

/// The names that a member's declaration may declare, given a token of it.
fn names_of_member<'a>(tokens: &[Token<'a>], at: usize) -> impl Iterator<Item = &'a [u8]> {
    let ends = |token: &Token<'_>| matches!(token.text, b";" | b"{" | b"}");
    let (before, after) = tokens.split_at(at);
    let start = before.iter().rposition(ends).map_or(0, |end| end + 1);
    let end = after.iter().position(ends).map_or(tokens.len(), |end| at + end);
    let member = tokens.get(start..end).unwrap_or_default();
    let words = member.iter().filter(|token| token.kind == Kind::Word).map(|token| token.text);
    words.filter(|word| !is_keyword(word))
}
