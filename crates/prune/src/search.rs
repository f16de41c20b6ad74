//! Which declarations something in the object may depend on.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::declaration::{Introduced, Scope};
use crate::mention::{Mentions, mentions};
use crate::token::Token;

/// Numbers of declarations, by what they declare.
type Numbers<'a> = FxHashMap<&'a [u8], Vec<usize>>;

/// Of each declaration of a file, whether it is kept.
pub(crate) fn kept(declarations: &[&[Token<'_>]]) -> Vec<bool> {
    let mut scope = Scope::new();
    let introduced: Vec<_> = declarations.iter().map(|each| scope.introduce(each)).collect();
    let mut search = Search::new(declarations, &introduced);
    let (mut roots, mut assertions) = (Vec::new(), Vec::new());
    for (number, (tokens, each)) in declarations.iter().zip(&introduced).enumerate() {
        if each.is_kept || tokens.first().is_some_and(|token| token.is_own) {
            roots.push(number);
        } else if each.is_assertion {
            assertions.push(number);
        }
    }
    search.keep(roots);
    // What an assertion is about is asserted where it is used.
    for number in assertions {
        if search.has_all_that_is_mentioned(number) {
            search.keep(vec![number]);
        }
    }
    search.kept
}

struct Search<'s, 'a> {
    declarations: &'s [&'s [Token<'a>]],
    introduced: &'s [Introduced<'a>],
    names: Numbers<'a>,
    tags: Numbers<'a>,
    kept: Vec<bool>,
    /// Members that something kept accesses, of whatever structure.
    accessed: FxHashSet<&'a [u8]>,
    /// What kept members point to that nothing accesses yet.
    pointed_to: FxHashMap<&'a [u8], Vec<&'a [u8]>>,
}

impl<'s, 'a> Search<'s, 'a> {
    fn new(declarations: &'s [&'s [Token<'a>]], introduced: &'s [Introduced<'a>]) -> Self {
        let (mut names, mut tags) = (Numbers::default(), Numbers::default());
        for (number, each) in introduced.iter().enumerate() {
            for name in &each.names {
                names.entry(name).or_default().push(number);
            }
            for tag in &each.tags {
                tags.entry(tag).or_default().push(number);
            }
        }
        Self {
            declarations,
            introduced,
            names,
            tags,
            kept: vec![false; declarations.len()],
            accessed: FxHashSet::default(),
            pointed_to: FxHashMap::default(),
        }
    }

    /// Keeps declarations, and what they mention.
    fn keep(&mut self, mut waiting: Vec<usize>) {
        while let Some(number) = waiting.pop() {
            if let Some(is_kept) = self.kept.get_mut(number)
                && !std::mem::replace(is_kept, true)
            {
                self.follow(number, &mut waiting);
            }
        }
    }

    fn mentions(&self, number: usize) -> Mentions<'a> {
        self.declarations.get(number).map(|tokens| mentions(tokens)).unwrap_or_default()
    }

    /// Adds the declarations of what a kept one mentions, and all others of what it declares.
    fn follow(&mut self, number: usize, waiting: &mut Vec<usize>) {
        let Mentions { names, mut tags, accessed, members } = self.mentions(number);
        for (member, tag) in members {
            if self.accessed.contains(member) {
                tags.push(tag);
            } else {
                self.pointed_to.entry(member).or_default().push(tag);
            }
        }
        for member in accessed {
            if self.accessed.insert(member) {
                tags.extend(self.pointed_to.remove(member).unwrap_or_default());
            }
        }
        let own = self.introduced.get(number).map_or(&[][..], |each| &each.names);
        let names = names.iter().chain(own).filter_map(|name| self.names.get(name));
        let tags = tags.iter().filter_map(|tag| self.tags.get(tag));
        waiting.extend(names.chain(tags).flatten());
    }

    fn has_all_that_is_mentioned(&self, number: usize) -> bool {
        let Mentions { names, tags, .. } = self.mentions(number);
        let names = names.iter().filter_map(|name| self.names.get(name));
        let tags = tags.iter().filter_map(|tag| self.tags.get(tag));
        names.chain(tags).flatten().all(|number| self.kept.get(*number) == Some(&true))
    }
}
