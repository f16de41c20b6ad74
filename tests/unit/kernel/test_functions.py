"""Functions in C source: their names and their code."""

from __future__ import annotations

import pytest

from mepof.kernel.functions import definitions, source_name

SOURCE = r"""
#include <linux/fs.h>
#define TWICE(x) do { \
	(x) += (x); \
} while (0)

struct pipe { int (*read)(struct pipe *p); };
static const struct file_operations ops __ro_after_init = {
	.read = pipe_read,
};

/* A comment { with a brace. */
static __always_inline ssize_t
pipe_read(struct kiocb *iocb, int (*actor)(void *))
	__acquires(&pipe->mutex)
{
	char brace = '{'; // "unfinished
	printk("}\n\"{");
#ifdef CONFIG_X
	if (a) {
#else
	if (b) {
#endif
		return 1;
	}
}

static inline bool empty(void) { return true; }
static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
}
__printf(2, 3) void __noinline say(int level, const char *format, ...)
{
}
SYSCALL_DEFINE3(read, unsigned int, fd, char __user *, buf, size_t, count)
{
	return ksys_read(fd, buf, count);
}
COMPAT_SYSCALL_DEFINE1(nice, int, by)
{
	return 0;
}
DEFINE_IDTENTRY_RAW(exc_page_fault)
{
	handle();
}
int declared(void);
int last(void)
{
	return ops == 0;
}
"""


def test_functions_are_found_by_their_names() -> None:
    assert list(definitions(SOURCE)) == [
        "pipe_read",
        "empty",
        "INIT_LIST_HEAD",
        "say",
        "sys_read",
        "compat_sys_nice",
        "exc_page_fault",
        "last",
    ]


def test_comments_and_layout_are_not_code() -> None:
    one = definitions("int f(void)\n{\n\treturn 1; /* why */\n}\n")
    other = definitions("/* f */\nint f(void)\n{\n\n\t/* why\n not */ return   1;\n}\n")
    assert one == other
    assert definitions("int f(void)\n{\n\treturn 2;\n}\n") != one
    assert definitions('int f(void)\n{\n\treturn "/*"[0];\n}\n')["f"].count("/*") == 1


def test_a_function_that_is_defined_under_two_conditions_has_both_codes() -> None:
    text = (
        "#ifdef A\nint f(void)\n{\n\treturn 1;\n}\n#else\nint f(void)\n{\n\treturn 2;\n}\n#endif\n"
    )
    assert "return 1;" in definitions(text)["f"] and "return 2;" in definitions(text)["f"]


@pytest.mark.parametrize("text", ["", "}", "{{{", "int f(", "#", "/* ", '"', "int f(void)\n{\n"])
def test_what_is_not_finished_defines_nothing(text: str) -> None:
    assert definitions(text) == {}


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("vfs_read", "vfs_read"),
        ("__do_sys_read", "sys_read"),
        ("__x64_sys_read", "sys_read"),
        ("__se_compat_sys_nice", "compat_sys_nice"),
        ("do_sys_open", "do_sys_open"),
        ("put_page.llvm.123", "put_page"),
        ("f.constprop.0.isra.0", "f"),
        ("f.cold", "f"),
    ],
)
def test_the_name_in_the_source_of_a_symbol(symbol: str, name: str) -> None:
    assert source_name(symbol) == name
