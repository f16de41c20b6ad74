//! What is kept of a file, and what is left out.

use mepof_prune::prune;
use proptest::prelude::*;

/// Says what is left of a header when a file that includes it says this.
#[track_caller]
fn keeps(header: &str, file: &str, wanted: &str) {
    let text = format!("# 1 \"a.c\"\n# 1 \"a.h\" 1\n{header}\n# 2 \"a.c\" 2\n{file}\n");
    let made = prune(text.as_bytes()).unwrap_or_default();
    let made = String::from_utf8_lossy(&made);
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(squeezed(&made), squeezed(&format!("# 1 \"a.c\"\n{wanted}{file}")), "{header}");
}

#[test]
fn what_nothing_names_is_left_out() {
    keeps(
        "typedef int used; typedef int unused;
         struct used_too { used a; }; struct unused_too { unused a; };
         static inline int unused_function(void) { return 1; }
         extern int elsewhere; int prototype(void); static int value = 3;
         enum { UNUSED }; struct only_named; union u { int a; };",
        "int f(struct used_too *p) { return p->a; }",
        "typedef int used;
         struct used_too { used a; };",
    );
}

#[test]
fn what_is_named_keeps_what_it_names() {
    keeps(
        "enum kind { ONE, TWO = 1 + sizeof(int [2]), THREE };
         typedef enum kind kind_t;
         struct inner { kind_t kind; }; struct outer { struct inner in; int inner; };
         static inline kind_t of(struct outer *o) { return o->in.kind; }
         static inline kind_t by(struct outer *o) { return o->in.kind; }",
        "int f(void *p) { return of(p) == TWO; }",
        "enum kind { ONE, TWO = 1 + sizeof(int [2]), THREE };
         typedef enum kind kind_t;
         struct inner { kind_t kind; };
         struct outer { struct inner in; int inner; };
         static inline kind_t of(struct outer *o) { return o->in.kind; }",
    );
}

#[test]
fn a_member_is_no_use_of_a_function_of_its_name() {
    keeps(
        "int read(void); int write(void);",
        "int f(struct s *p) { return p->read + p . write; }",
        "",
    );
    keeps(
        "enum { HIGH };",
        "int f(int i) { switch (i) { case 0 ... HIGH: return 1; } }",
        "enum { HIGH };",
    );
}

#[test]
fn a_tag_is_no_use_of_a_function_of_its_name() {
    keeps("int page(void); struct page;", "struct page *p;", "struct page;");
    keeps("int page(void); struct page;", "int f(void) { return page(); }", "int page(void);");
}

#[test]
fn every_declaration_of_a_name_is_kept() {
    keeps(
        "void stop(void); int other(void);
         __attribute__((__noreturn__)) void stop(void);
         struct s; struct s { int a; };",
        "void f(struct s *s) { stop(); }",
        "void stop(void);
         __attribute__((__noreturn__)) void stop(void);
         struct s;
         struct s { int a; };",
    );
}

#[test]
fn a_definition_has_what_earlier_declarations_say_of_it() {
    for (header, file) in [
        ("extern int x __attribute__((section(\"s\")));", "int x;"),
        ("extern int x __attribute__((aligned(64)));", "int x = 1;"),
        ("void x(void) __attribute__((cold));", "void x(void) { }"),
        ("void x(void) __attribute__((cold));", "void (x)(void) { }"),
        ("extern int x __attribute__((weak)), y;", "int z, x;"),
    ] {
        keeps(header, file, header);
    }
}

#[test]
fn what_a_member_points_to_is_kept_if_it_is_accessed() {
    let far = "struct far { int a; };";
    let near = "typedef int type; enum { SIZE, WIDTH };
        struct near { struct far *to; type type[SIZE]; int bits : WIDTH; int (*call)(struct far *far); };";
    let header =
        format!("{far} {near} int far(void); int to(void); int bits(void); int call(void);");
    keeps(&header, "int f(struct near *n) { return sizeof(*n); }", near);
    for file in [
        "void *f(struct near *n) { return n->to; }",
        "struct near n = { .to = 0 };",
        "int f(struct near *n) { return n->call != 0; }",
    ] {
        keeps(&header, file, &format!("{far} {near}"));
    }
    // By value, it is part of the layout.
    let header = "struct far { int a; }; struct near { struct far to, *more; };";
    keeps(header, "struct near n;", header);
}

#[test]
fn what_a_structure_points_to_is_kept_whoever_comes_first() {
    let header = "struct far { int a; }; struct near { struct far *to; };
        static inline int get(struct near *n) { return n->to->a; }";
    keeps(header, "int f(struct near *n) { return get(n); }", header);
    keeps(header, "int f(void *n) { return get(n); }", header);
}

#[test]
fn names_of_parameters_are_no_uses() {
    keeps(
        "typedef int type; int page(void); int size(void); int type2(void);
         int f(struct s *page, const type, unsigned int size, type type2[2]);",
        "int g = f;",
        "typedef int type;
         int f(struct s *page, const type, unsigned int size, type type2[2]);",
    );
}

#[test]
fn an_assertion_is_kept_where_it_is_about_something_kept() {
    let header = "struct s { int a; }; _Static_assert(sizeof(struct s) == 4, \"s\");";
    keeps(header, "struct s s;", header);
    keeps(header, "int s;", "");
    keeps("enum { A, B };", "_Static_assert(B == 1, \"B\");", "enum { A, B };");
}

#[test]
fn the_first_to_mention_a_tag_declares_it() {
    // Without it, the parameter's type would be another one.
    keeps(
        "extern struct s *make(void); extern struct s *again(void); int use(struct s *);",
        "void f(void) { use(0); }",
        "extern struct s *make(void);
         int use(struct s *);",
    );
}

#[test]
fn what_is_in_the_object_by_itself_is_kept() {
    for kept in [
        "int defined;",
        "int defined = 3;",
        "int function(void), defined;",
        "int (*defined)(void);",
        "int defined[] = { 1, 2 };",
        "extern int defined = 3;",
        "int defined(void) { return 1; }",
        "inline int defined(void) { return 1; }",
        "extern inline int defined(void) { return 1; }",
        "static int __attribute__((__used__)) kept = 1;",
        "static void __attribute__((constructor)) kept(void) { }",
        "static int kept(void) __attribute__((alias(\"other\")));",
        "asm(\".globl x\");",
        "__asm__ (\".globl x\");",
        "_Static_assert(sizeof(int) == 4, \"size\");",
        "static int (*kept)(void) __attribute__((used));",
        "typeof(int) defined;",
        "#pragma pack(1)",
    ] {
        keeps(kept, "int f;", kept);
    }
}

#[test]
fn what_makes_nothing_by_itself_is_not() {
    for dropped in [
        "static int value;",
        "static int value = 3, more[2] = { 1, 2 };",
        "static struct { int a; } value = { .a = 1 };",
        "extern __inline int f(void) __attribute__((__gnu_inline__)) ;",
        "extern inline __attribute__((__gnu_inline__)) int f(void) { return 1; }",
        "typedef struct { int a; } type;",
        "typedef int (*pointer)(void);",
        "extern int *(*table[4])(int);",
        "union u { struct { int a; } b; };",
        ";",
    ] {
        keeps(dropped, "int g;", "");
    }
}

#[test]
fn every_form_of_declarator_introduces_its_name() {
    for declaration in [
        "typedef int name;",
        "typedef int (name)(void);",
        "typedef int (*name)(void);",
        "typedef int (*const name)(void);",
        "typedef int (__attribute__((x)) *name)(void);",
        "typedef int other, name;",
        "typedef int other, (*name)(void);",
        "typedef struct { int a; } __attribute__((packed)) name;",
        "typedef struct tag { int a; } *name;",
        "typedef __typeof__(1) name;",
        "extern int name[2];",
        "extern int (*name[2])(int);",
        "extern int (*name(int))(void);",
        "int name(void) __asm__(\"other\");",
        "static int first = (1, 2), name;",
        "static int first[] = { 1, 2 }, name;",
        "enum { FIRST, name };",
        "enum tag { FIRST = (1 , 2), name = 3 };",
        "typedef enum { name } type;",
        "struct tag { enum { name } member; };",
        "static inline int name(void) { if (1) { return 1; } return 0; }",
        "static __attribute__((x(1, 2))) struct tag *name(void) { return 0; }",
    ] {
        keeps(&format!("typedef int before; {declaration}"), "int f = name;", declaration);
    }
    for declaration in [
        "typedef before (*name)(const char *other);",
        "typedef before (name)(const char *other);",
        "static before (*name)(int), other;",
    ] {
        let header = format!("typedef int before; int other; {declaration}");
        let wanted = format!("typedef int before; {declaration}");
        keeps(&header.replace("int other; ", ""), "int f = name;", &wanted);
    }
}

#[test]
fn a_type_that_is_known_may_be_a_name_once_more() {
    keeps(
        "typedef int size; static inline size other(void) { return 0; } typedef int size;",
        "size f;",
        "typedef int size;
         typedef int size;",
    );
}

#[test]
fn a_function_is_kept_for_its_builtin_and_its_alias() {
    keeps(
        "void *memcpy(void *, const void *);",
        "void f(void) { __builtin_memcpy(0, 0, 1); }",
        "void *memcpy(void *, const void *);",
    );
    keeps(
        "static void real(void) { }",
        "void f(void) __attribute__((alias(\"real\")));",
        "static void real(void) { }",
    );
}

#[test]
fn attributes_may_be_between_a_keyword_and_a_tag() {
    keeps(
        "struct __attribute__((packed)) s { int a; };",
        "int f(struct s *s) { return s->a; }",
        "struct __attribute__((packed)) s { int a; };",
    );
    keeps(
        "struct s { int a; };",
        "int f(struct __attribute__((x)) s *s) { return s->a; }",
        "struct s { int a; };",
    );
}

#[test]
fn the_text_does_not_tell_where_declarations_stand() {
    let one = "# 1 \"a.c\"\n# 7 \"a.h\" 1\nint x(\nvoid);\n# 2 \"a.c\" 2\nint f = x;\n";
    let other = "# 1 \"a.c\"\n# 1 \"b.h\" 1\nint   x(void);int y;\n# 9 \"a.c\" 2\n\nint f = x;\n";
    let [one, other] = [one, other].map(|text| prune(text.as_bytes()).unwrap_or_default());
    assert_eq!(String::from_utf8(one).unwrap(), "# 1 \"a.c\"\nint x ( void ) ;\nint f = x ;\n");
    assert_eq!(
        String::from_utf8(other).unwrap(),
        "# 1 \"a.c\"\nint x ( void ) ;\nint y ;\nint f = x ;\n"
    );
}

#[test]
fn a_file_that_asks_for_its_place_is_left_alone() {
    assert_eq!(prune(b"# 1 \"a.c\"\nint f = __builtin_LINE();\n"), None);
}

#[test]
fn a_pragma_in_a_declaration_stays_a_line() {
    keeps("", "int f(void) {\n#pragma x\nreturn 1; }", "");
    let text = b"# 1 \"a.c\"\nint f(void) {\n#pragma x\nreturn 1; }";
    let wanted = "# 1 \"a.c\"\nint f ( void ) {\n#pragma x\nreturn 1 ; }\n";
    assert_eq!(String::from_utf8(prune(text).unwrap()).unwrap(), wanted);
}

proptest! {
    #[test]
    fn any_text_has_an_outcome(text in "[ -~\n]{0,200}") {
        prop_assert!(prune(text.as_bytes()).unwrap_or_default().len() <= 2 * text.len() + 1);
    }

    #[test]
    fn any_words_have_an_outcome(
        words in prop::collection::vec(prop::sample::select(vec![
            "struct", "enum", "typedef", "static", "extern", "int", "a", "b", "{", "}", "(", ")",
            "[", "]", ";", ",", "=", "*", "__attribute__", "asm", "\"s\"", "\n# 3 \"a.h\"\n", "...",
        ]), 0..60),
    ) {
        let text = words.join(" ");
        let once = prune(text.as_bytes());
        // What is left needs all of itself.
        prop_assert_eq!(prune(&once.clone().unwrap_or_default()), once);
    }
}
