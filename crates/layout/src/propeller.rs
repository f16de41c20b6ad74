//! Propeller's two files: `cc_profile`, which Clang reads (`-fbasic-block-sections=list=`), and
//! `ld_profile`, which LLD reads (`--symbol-ordering-file=`).
//!
//! Format of `cc_profile`: LLVM 19 and 22, `llvm/lib/CodeGen/BasicBlockSectionsProfileReader.cpp`.

use std::io::{self, Write};

use rustc_hash::FxHashSet;

use crate::function_layout::FunctionLayout;
use crate::layout::{Layout, SectionRef};
use crate::{FunctionSymbol, Node, Symbols};

/// A syntax of `cc_profile`. Clang 19 to 22 read both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Lines that begin with `!` and `!!`; no copies of blocks.
    V0,
    /// Lines that begin with a letter, after a line `v1`.
    #[default]
    V1,
}

/// For which functions the source file is written. Clang can only compare it when it compiles
/// with debug information (`-g1` is enough): without, it ignores a function that names a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modules {
    /// For functions whose name others have too.
    #[default]
    WhereAmbiguous,
    /// For all functions whose source file is known.
    Always,
    /// For none: functions whose name others have too are left out.
    Never,
}

/// What to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileOptions {
    /// The syntax.
    pub version: Version,
    /// Which functions name their source file.
    pub modules: Modules,
    /// Write the counts of blocks and edges (`g`): version 1, for Clang 20 and later.
    pub counts: bool,
    /// Write the blocks' hashes (`h`), where the binary has them: version 1, for Clang 22.
    pub hashes: bool,
}

/// What happened to the layout's functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileTally {
    /// Written.
    pub written: u64,
    /// Without a symbol, or with one that the format cannot express; in version 0 also those
    /// with copied blocks.
    pub nameless: u64,
    /// Other functions have the same name, and nothing known tells them apart.
    pub ambiguous: u64,
}

/// A layout with names: what both files are written from.
#[derive(Clone, Debug)]
pub struct Profile<'a> {
    layout: &'a Layout,
    /// By the layout's function.
    names: Vec<Option<Named<'a>>>,
    options: ProfileOptions,
    tally: ProfileTally,
}

#[derive(Clone, Debug)]
struct Named<'a> {
    names: &'a [String],
    module: Option<&'a str>,
}

impl<'a> Profile<'a> {
    /// Names the functions of `layout`. Of functions with the same name and source file, the format
    /// allows only one; which of them is meant is not known, so none is written.
    pub fn new(layout: &'a Layout, symbols: &'a Symbols, options: ProfileOptions) -> Self {
        let mut tally = ProfileTally::default();
        let mut taken: FxHashSet<(&str, Option<&str>)> = FxHashSet::default();
        let same = same_names_and_modules(symbols);
        let mut names = Vec::with_capacity(layout.functions.len());
        for function in &layout.functions {
            let named = match symbols.at(function.address) {
                Some(symbol) if is_expressible(symbol, function, options.version) => {
                    let module = module(symbols, symbol, options.modules);
                    let ambiguous = symbols.is_ambiguous(symbol);
                    let known = !ambiguous || (module.is_some() && !is_in(&same, symbol));
                    let free = symbol.names.iter().all(|name| taken.insert((name, module)));
                    if known && free {
                        tally.written += 1;
                        Some(Named { names: &symbol.names, module })
                    } else {
                        tally.ambiguous += 1;
                        None
                    }
                }
                _ => {
                    tally.nameless += 1;
                    None
                }
            };
            names.push(named);
        }
        Self { layout, names, options, tally }
    }

    /// What happened to the layout's functions.
    pub fn tally(&self) -> ProfileTally {
        self.tally
    }

    /// Writes `cc_profile`, the hottest function first.
    pub fn write_cc_profile(&self, out: &mut impl Write) -> io::Result<()> {
        if self.options.version == Version::V1 {
            writeln!(out, "v1")?;
        }
        for section in self.layout.order.iter().filter(|section| section.cluster == 0) {
            if let Some((function, named)) = self.function(section.function) {
                match self.options.version {
                    Version::V0 => write_v0(out, function, named)?,
                    Version::V1 => write_v1(out, function, named, self.options)?,
                }
            }
        }
        Ok(())
    }

    /// Writes `ld_profile`: the symbols of hot sections in order, then those of cold ones.
    pub fn write_ld_profile(&self, out: &mut impl Write) -> io::Result<()> {
        let mut written: FxHashSet<String> = FxHashSet::default();
        let mut line = |name: String| -> io::Result<()> {
            if !written.contains(&name) {
                writeln!(out, "{name}")?;
                written.insert(name);
            }
            Ok(())
        };
        for &SectionRef { function, cluster } in &self.layout.order {
            let Some((_, named)) = self.function(function) else { continue };
            for name in named.names {
                line(match cluster {
                    0 => name.clone(),
                    part => format!("{name}.__part.{part}"),
                })?;
            }
        }
        for section in self.layout.order.iter().filter(|section| section.cluster == 0) {
            let Some((function, named)) = self.function(section.function) else { continue };
            if function.has_cold {
                named.names.iter().try_for_each(|name| line(format!("{name}.cold")))?;
            }
        }
        Ok(())
    }

    fn function(&self, index: u32) -> Option<(&FunctionLayout, &Named<'a>)> {
        let named = self.names.get(index as usize)?.as_ref()?;
        Some((self.layout.functions.get(index as usize)?, named))
    }
}

fn module<'a>(symbols: &Symbols, symbol: &'a FunctionSymbol, modules: Modules) -> Option<&'a str> {
    let wanted = match modules {
        Modules::WhereAmbiguous => symbols.is_ambiguous(symbol),
        Modules::Always => true,
        Modules::Never => false,
    };
    let module = symbol.module.as_deref().filter(|_| wanted)?;
    // The reader takes one word, and drops a leading "./" on both sides.
    (!module.is_empty() && !module.contains(is_separator)).then_some(module)
}

/// Names that two functions of one source file have: a file that is compiled twice.
fn same_names_and_modules(symbols: &Symbols) -> FxHashSet<(&str, &str)> {
    let mut once: FxHashSet<(&str, &str)> = FxHashSet::default();
    let mut twice = FxHashSet::default();
    for (_, symbol) in symbols.iter() {
        let Some(module) = symbol.module.as_deref() else { continue };
        for name in &symbol.names {
            if !once.insert((name, module)) {
                twice.insert((name.as_str(), module));
            }
        }
    }
    twice
}

fn is_in(same: &FxHashSet<(&str, &str)>, symbol: &FunctionSymbol) -> bool {
    let Some(module) = symbol.module.as_deref() else { return false };
    symbol.names.iter().any(|name| same.contains(&(name.as_str(), module)))
}

fn is_separator(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control()
}

fn is_expressible(symbol: &FunctionSymbol, function: &FunctionLayout, version: Version) -> bool {
    if version == Version::V0 && !function.cloned.is_empty() {
        return false;
    }
    let fits = |name: &String| {
        let separates = |letter| is_separator(letter) || (version == Version::V0 && letter == '/');
        // A line that begins with '#' is a comment to both readers; a name never begins one,
        // but in ld_profile.
        !name.is_empty() && !name.starts_with('#') && !name.contains(separates)
    };
    !symbol.names.is_empty() && symbol.names.iter().all(fits)
}

fn block_id(node: &Node) -> String {
    match node.clone {
        0 => node.id.to_string(),
        clone => format!("{}.{clone}", node.id),
    }
}

fn cluster_ids(function: &FunctionLayout, cluster: &[u32]) -> String {
    let node = |&index: &u32| function.graph.nodes.get(index as usize).map(block_id);
    cluster.iter().filter_map(node).collect::<Vec<_>>().join(" ")
}

fn write_v0(out: &mut impl Write, function: &FunctionLayout, named: &Named<'_>) -> io::Result<()> {
    write!(out, "!{}", named.names.join("/"))?;
    if let Some(module) = named.module {
        write!(out, " M={module}")?;
    }
    writeln!(out)?;
    for cluster in &function.clusters {
        writeln!(out, "!!{}", cluster_ids(function, cluster))?;
    }
    Ok(())
}

fn write_v1(
    out: &mut impl Write,
    function: &FunctionLayout,
    named: &Named<'_>,
    options: ProfileOptions,
) -> io::Result<()> {
    if let Some(module) = named.module {
        writeln!(out, "m {module}")?;
    }
    writeln!(out, "f {}", named.names.join(" "))?;
    for path in &function.cloned {
        let ids: Vec<String> = path.ids.iter().map(u32::to_string).collect();
        writeln!(out, "p {}", ids.join(" "))?;
    }
    for cluster in &function.clusters {
        writeln!(out, "c {}", cluster_ids(function, cluster))?;
    }
    if options.counts {
        write_counts(out, function)?;
    }
    if options.hashes {
        let hashes: Vec<String> = function
            .graph
            .nodes
            .iter()
            .filter(|node| node.clone == 0)
            .filter_map(|node| Some(format!("{}:{:X}", node.id, node.hash?)))
            .collect();
        if !hashes.is_empty() {
            writeln!(out, "h {}", hashes.join(" "))?;
        }
    }
    Ok(())
}

fn write_counts(out: &mut impl Write, function: &FunctionLayout) -> io::Result<()> {
    let mut edges = function.graph.edges.iter().peekable();
    write!(out, "g")?;
    for (index, node) in (0_u32..).zip(&function.graph.nodes) {
        let mut leaving = Vec::new();
        while let Some(edge) = edges.next_if(|edge| edge.source <= index) {
            leaving.push(edge);
        }
        if node.count == 0 {
            continue;
        }
        write!(out, " {}:{}", block_id(node), node.count)?;
        for edge in leaving {
            if let Some(target) = function.graph.nodes.get(edge.target as usize) {
                write!(out, ",{}:{}", block_id(target), edge.count)?;
            }
        }
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClonedPath, Edge, FunctionGraph};
    use mepof_address::ImageAddress;

    fn node(id: u32, clone: u32, count: u64) -> Node {
        let (has_indirect_branch, is_landing_pad) = (false, false);
        let hash = (clone == 0).then_some(0xab0 + u64::from(id));
        Node { id, clone, size: 8, count, has_indirect_branch, is_landing_pad, hash }
    }

    fn function(address: u64, nodes: Vec<Node>, clusters: Vec<Vec<u32>>) -> FunctionLayout {
        let address = ImageAddress(address);
        let edges = vec![Edge { source: 0, target: 1, count: 7 }];
        FunctionLayout {
            address,
            graph: FunctionGraph { function: 0, address, entry_count: 0, nodes, edges },
            cloned: Vec::new(),
            clusters,
            has_cold: true,
            score_before: 0.0,
            score_after: 0.0,
        }
    }

    /// Two functions; the second is hotter, and has a second section.
    fn layout() -> Layout {
        let section = |function, cluster| SectionRef { function, cluster };
        let nodes = || vec![node(0, 0, 9), node(4, 0, 7), node(2, 0, 0)];
        Layout {
            functions: vec![
                function(0x100, nodes(), vec![vec![0, 1]]),
                function(0x200, nodes(), vec![vec![0], vec![1]]),
            ],
            order: vec![section(1, 0), section(0, 0), section(1, 1)],
        }
    }

    fn symbol(names: &[&str], module: Option<&str>) -> FunctionSymbol {
        FunctionSymbol {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            module: module.map(str::to_owned),
            local_number: None,
        }
    }

    fn symbols(all: &[(u64, FunctionSymbol)]) -> Symbols {
        Symbols::new(all.iter().map(|(address, symbol)| (ImageAddress(*address), symbol.clone())))
    }

    fn written(
        layout: &Layout,
        symbols: &Symbols,
        options: ProfileOptions,
    ) -> (String, String, ProfileTally) {
        let profile = Profile::new(layout, symbols, options);
        let (mut cc, mut ld) = (Vec::new(), Vec::new());
        profile.write_cc_profile(&mut cc).unwrap();
        profile.write_ld_profile(&mut ld).unwrap();
        (String::from_utf8(cc).unwrap(), String::from_utf8(ld).unwrap(), profile.tally())
    }

    #[test]
    fn the_linker_gets_hot_sections_then_warm_then_cold_ones_by_every_name() {
        let symbols = symbols(&[
            (0x100, symbol(&["f", "alias"], Some("f.c"))),
            (0x200, symbol(&["g"], Some("g.c"))),
        ]);
        let (cc, ld, tally) = written(&layout(), &symbols, ProfileOptions::default());
        assert_eq!(cc, "v1\nf g\nc 0\nc 4\nf f alias\nc 0 4\n");
        assert_eq!(ld, "g\nf\nalias\ng.__part.1\ng.cold\nf.cold\nalias.cold\n");
        assert_eq!(tally, ProfileTally { written: 2, ..ProfileTally::default() });
        let options = ProfileOptions {
            version: Version::V0,
            modules: Modules::Always,
            ..ProfileOptions::default()
        };
        let (cc, ..) = written(&layout(), &symbols, options);
        assert_eq!(cc, "!g M=g.c\n!!0\n!!4\n!f/alias M=f.c\n!!0 4\n");
    }

    #[test]
    fn copies_counts_and_hashes_have_lines_of_their_own() {
        let mut layout = layout();
        layout.functions.truncate(1);
        layout.order.retain(|section| section.function == 0);
        let function = &mut layout.functions[0];
        function.cloned = vec![ClonedPath { ids: vec![0, 4] }];
        function.graph.nodes.push(node(4, 1, 3));
        function.clusters = vec![vec![0, 3, 1]];
        let symbols = symbols(&[(0x100, symbol(&["f"], None))]);
        let options = ProfileOptions { counts: true, hashes: true, ..ProfileOptions::default() };
        let (cc, ..) = written(&layout, &symbols, options);
        let expected = "v1\nf f\np 0 4\nc 0 4.1 4\ng 0:9,4:7 4:7 4.1:3\nh 0:AB0 4:AB4 2:AB2\n";
        assert_eq!(cc, expected);
        let options = ProfileOptions { version: Version::V0, ..ProfileOptions::default() };
        let (cc, _, tally) = written(&layout, &symbols, options);
        assert_eq!((cc.as_str(), tally.nameless), ("", 1));
    }

    #[test]
    fn functions_of_one_name_are_told_apart_by_their_files_or_left_out() {
        let two = |one: Option<&str>, other: Option<&str>| {
            symbols(&[(0x100, symbol(&["f"], one)), (0x200, symbol(&["f"], other))])
        };
        let (cc, ld, _) =
            written(&layout(), &two(Some("a.c"), Some("b.c")), ProfileOptions::default());
        assert_eq!(cc, "v1\nm b.c\nf f\nc 0\nc 4\nm a.c\nf f\nc 0 4\n");
        assert_eq!(ld, "f\nf.__part.1\nf.cold\n"); // a name that is there twice makes LLD warn
        for (one, other, written_count) in
            [(Some("a.c"), Some("a.c"), 0), (Some("a.c"), None, 1), (Some("a b.c"), Some(""), 0)]
        {
            let (_, _, tally) = written(&layout(), &two(one, other), ProfileOptions::default());
            assert_eq!((tally.written, tally.ambiguous), (written_count, 2 - written_count));
        }
        let options = ProfileOptions { modules: Modules::Never, ..ProfileOptions::default() };
        let (cc, ..) = written(&layout(), &two(Some("a.c"), Some("b.c")), options);
        assert_eq!(cc, "v1\n");
    }

    #[test]
    fn a_name_of_a_function_that_did_not_run_is_ambiguous_too() {
        let symbols = symbols(&[
            (0x100, symbol(&["f"], None)),
            (0x200, symbol(&["g"], None)),
            (0x900, symbol(&["g"], None)),
        ]);
        let (cc, _, tally) = written(&layout(), &symbols, ProfileOptions::default());
        assert_eq!(cc, "v1\nf f\nc 0 4\n");
        assert_eq!(tally.ambiguous, 1);
    }

    #[test]
    fn names_that_the_format_cannot_express_are_left_out() {
        for name in ["", "two words", "line\nbreak", "#comment"] {
            let symbols = symbols(&[(0x100, symbol(&[name], None))]);
            let (cc, ld, tally) = written(&layout(), &symbols, ProfileOptions::default());
            assert_eq!((cc.as_str(), ld.as_str(), tally.nameless), ("v1\n", "", 2));
        }
    }
}
