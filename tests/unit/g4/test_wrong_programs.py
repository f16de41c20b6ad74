from __future__ import annotations

import pytest

from .reading import headlines

OPT = "opt /src pgo rand kbench.\n"

CASES = {
    "missing dot at the end": (
        "eval /a.img file",
        "p.g4:1:17: error: `.` is missing at the end of the `eval` statement",
    ),
    "missing dot before the next line": (
        "opt /src pgo rand kbench\neval /a.img file.",
        "p.g4:1:25: error: `.` is missing at the end of the `opt` statement",
    ),
    "missing dot on the same line": (
        "eval /a.img file set seed 1.",
        "p.g4:1:18: error: `eval` takes at most 2 operands, found 5",
    ),
    "unknown verb": ("opr /src pgo rand kbench.", "p.g4:1:1: error: unknown verb `opr`"),
    "verb in capitals": ("EVAL /a.img.", "p.g4:1:1: error: unknown verb `EVAL`"),
    "quoted verb": ('"eval" /a.img.', "p.g4:1:1: error: a statement begins with a verb"),
    "a list for a verb": ("eval;opt /a.img.", "p.g4:1:1: error: a statement begins with a verb"),
    "dot alone": (". eval /a.img.", "p.g4:1:1: error: there is no statement before this `.`"),
    "too few operands": (
        "opt /src.",
        "p.g4:1:1: error: `opt` is missing its algorithm and click",
    ),
    "too many operands": (
        "recomp /src /p O2 O3 Os.",
        "p.g4:1:19: error: `recomp` takes at most 3 operands, found 5",
    ),
    "list for one": (
        "opt /a;/b pgo rand.",
        "p.g4:1:5: error: expected one path, not a list",
    ),
    "dash for one": ("opt - pgo rand.", "p.g4:1:5: error: the path cannot be empty"),
    "dash in a list": (
        "eval /a;- file.",
        "p.g4:1:9: error: `-` stands for an empty list and cannot be an item",
    ),
    "item missing between": (
        "eval /a file;;pipe.",
        "p.g4:1:14: error: an item is missing before this `;`",
    ),
    "item missing at the end": (
        "eval /a file;.",
        "p.g4:1:13: error: an item is missing after this `;`",
    ),
    "empty string": ('eval "" file.', "p.g4:1:6: error: the image is empty"),
    "unterminated string": ('eval "/a.img file.\n', "p.g4:1:6: error: unterminated string"),
    "unknown escape": (r'eval "C:\new" file.', r"p.g4:1:9: error: unknown escape `\n`"),
    "quotes inside a word": (
        'profile /s pgo script kbench:"a b".',
        'p.g4:1:23: error: `"` inside the word `kbench:"a`',
    ),
    "word after a string": (
        'eval "/a"b file.',
        "p.g4:1:10: error: missing blank after the string",
    ),
    "NUL": ("eval /a\0 file.", "p.g4:1:8: error: control character U+0000"),
    "escape sequence in a comment": (
        "# \x1b[31m\nset seed 1.",
        "p.g4:1:3: error: control character U+001B",
    ),
    "no-break space": (
        "eval /a.img\u00a0file.",
        "p.g4:1:12: error: invisible character U+00A0 in a word",
    ),
    "unknown algorithm": (
        "opt /src pgoo rand kbench.",
        "p.g4:1:10: error: unknown algorithm `pgoo`",
    ),
    "unknown algorithm in a stack": (
        "opt /src autofdo+propeler rand kbench.",
        "p.g4:1:18: error: unknown algorithm `propeler`",
    ),
    "half a stack": (
        "opt /src autofdo+ rand kbench.",
        "p.g4:1:10: error: `autofdo+` is missing an algorithm next to `+`",
    ),
    "an algorithm twice in a stack": (
        "opt /src pgo+pgo rand kbench.",
        "p.g4:1:14: error: `pgo` is already in the stack",
    ),
    "a stack of counts": (
        "opt /src pgo+cspgo rand kbench.",
        "p.g4:1:14: error: `cspgo` cannot build on `pgo`: "
        "`clang` uses the profile of one of them only",
    ),
    "a stack of samples, counts and a layout": (
        "set toolchain clang-22.\nopt /src autofdo+pgo+propeller rand kbench.",
        "p.g4:2:18: error: `pgo` cannot build on `autofdo`: "
        "`clang-22` uses the profile of one of them only",
    ),
    "a stack on a layout": (
        "opt /src propeller+pgo rand kbench.",
        "p.g4:1:10: error: nothing can build on `propeller`: its profile fits only one build",
    ),
    "a branch trace for counters": (
        "set perf-data a.data.\nopt /src pgo rand kbench.",
        "p.g4:1:15: error: no round uses `a.data`",
    ),
    "more branch traces than rounds": (
        "set perf-data a.data,b.data,c.data.\nopt /src autofdo+propeller rand kbench.",
        "p.g4:1:15: error: no round uses `c.data`",
    ),
    "more branch traces than rounds of a loop": (
        "set rounds 2.\nset perf-data a.data,b.data,c.data.\nopt /src autofdo rand kbench.",
        "p.g4:2:15: error: no round uses `c.data`",
    ),
    "rounds of an algorithm that counts": (
        "set rounds 2.\nopt /src pgo+propeller rand kbench.",
        "p.g4:2:10: error: `pgo` has a fixed number of rounds",
    ),
    "rounds of an algorithm with rounds of its own": (
        "set rounds 3.\nopt /src cspgo rand kbench.",
        "p.g4:2:10: error: `cspgo` has a fixed number of rounds",
    ),
    "no rounds": (
        "set rounds 0.\nopt /src autofdo rand kbench.",
        "p.g4:1:12: error: invalid rounds `0`",
    ),
    "a decay above 1": (
        "set decay 1.5.\nopt /src autofdo rand kbench.",
        "p.g4:1:11: error: invalid decay `1.5`",
    ),
    "a negative decay": (
        "set decay -0.5.\nopt /src autofdo rand kbench.",
        "p.g4:1:11: error: invalid decay `-0.5`",
    ),
    "a base that is not a profile": (
        "build /src.\nset base build.\nopt /src autofdo rand kbench.",
        "p.g4:2:10: error: `build` is an image, not a profile",
    ),
    "a base that does not exist": (
        "set base old.\nopt /src autofdo rand kbench.",
        "p.g4:1:10: error: unknown profile `old`",
    ),
    "a base that is made later": (
        "set base opt.\nopt /src autofdo rand kbench.",
        "p.g4:1:10: error: `opt` is not made by an earlier statement",
    ),
    "the plain kernel as a base": (
        "build /src.\nset base plain.\nopt /src autofdo rand kbench.",
        "p.g4:2:10: error: `plain` is an image, not a profile",
    ),
    "a base of another algorithm": (
        f"{OPT}set base opt.\nopt /src autofdo rand kbench.",
        "p.g4:3:10: error: the base `opt` is a profile of `pgo`, not of `autofdo`",
    ),
    "a base of another algorithm for a stack": (
        "opt /src autofdo-probe+propeller rand kbench.\nset base opt.\n"
        "opt /src autofdo+propeller rand kbench.",
        "p.g4:3:10: error: the base `opt` is a profile of `autofdo-probe`, not of `autofdo`",
    ),
    "a stack of GCC's counts and samples": (
        "set toolchain gcc.\nopt /src gcc-pgo+gcc-autofdo rand kbench.",
        "p.g4:2:18: error: `gcc-autofdo` cannot build on `gcc-pgo`: "
        "`gcc` uses the profile of one of them only",
    ),
    "a base for GCC's counts": (
        "set toolchain gcc.\nset base /old/kernel.gcda.tar.\nopt /src gcc-pgo rand kbench.",
        "p.g4:3:10: error: `gcc-pgo` cannot begin with a base: its counts fit one source only",
    ),
    "a base for a layout": (
        "set base /old/kernel.cc_profile.\nopt /src propeller rand kbench.",
        "p.g4:2:10: error: `propeller` cannot begin with a base: "
        "each of its profiles fits one build only",
    ),
    "a base that nothing begins with": (
        "set base /old/kernel.afdo.\nrecomp /src /old/kernel.afdo.",
        "p.g4:1:10: error: the base `/old/kernel.afdo` is not used: nothing is profiled after it",
    ),
    "a base that another follows": (
        "set base /a.afdo.\nset base /b.afdo.\nopt /src autofdo rand kbench.",
        "p.g4:1:10: error: the base `/a.afdo` is not used: another base follows",
    ),
    "unknown click": ("opt /src pgo random kbench.", "p.g4:1:14: error: unknown click `random`"),
    "unknown app": ("opt /src pgo rand kbnch:x.", "p.g4:1:19: error: unknown app `kbnch`"),
    "a path that is not a description": (
        "opt /src pgo rand ./shop:2.",
        "p.g4:1:19: error: the path `./shop` does not end in `.toml`",
    ),
    "a description that is not a path": (
        "opt /src pgo rand app.toml.",
        "p.g4:1:19: error: unknown app `app.toml`",
    ),
    "a core's path that is not a description": (
        "set core ./mine.",
        "p.g4:1:10: error: the path `./mine` does not end in `.toml`",
    ),
    "a core's description that is not a path": (
        "set core mine.toml.",
        "p.g4:1:10: error: unknown core `mine.toml`",
    ),
    "a metric that is not a description": (
        "eval /a.img ./shop.",
        "p.g4:1:13: error: the path `./shop` does not end in `.toml`",
    ),
    "a described app that is not a path as a metric": (
        "eval /a.img app.toml.",
        "p.g4:1:13: error: unknown app `app.toml`",
    ),
    "a weight of a measured app": (
        "eval /a.img ./app.toml:2.",
        "p.g4:1:24: error: `eval` measures each action of an app once",
    ),
    "a goal for an app that is not measured": (
        "goal geomean:./app.toml 3.\neval /a;/b ./other.toml.",
        "p.g4:1:14: error: nothing measures `./app.toml`: an `eval` below does not name it",
    ),
    "a goal for a path that is not a description": (
        "goal geomean:./app 3.\neval /a;/b ./app.toml.",
        "p.g4:1:14: error: the path `./app` does not end in `.toml`",
    ),
    "a wrong weight of a described app": (
        "opt /src pgo rand ./app.toml:./list.",
        "p.g4:1:30: error: invalid weight `./list`",
    ),
    "a weight of a described app for a traversal": (
        "opt /src pgo trav ./app.toml:2.",
        "p.g4:1:30: error: `trav` takes no argument after an app",
    ),
    "a weight for a traversal": (
        "opt /src pgo trav kbench:2.",
        "p.g4:1:26: error: `trav` takes no argument after an app",
    ),
    "a script for a draw": (
        "opt /src pgo rand kbench:./list.",
        "p.g4:1:26: error: invalid weight `./list`",
    ),
    "unknown option": ("opt /src pgo rand kbench O9.", "p.g4:1:26: error: unknown option `O9`"),
    "unknown metric": ("eval /a files.", "p.g4:1:9: error: unknown metric `files`"),
    "two optimisation levels": (
        "opt /src pgo rand kbench O2;ThinLTO;O3.",
        "p.g4:1:37: error: `O3` conflicts with `O2`",
    ),
    "two kinds of LTO": (
        "recomp /src /p ThinLTO;FullLTO.",
        "p.g4:1:24: error: `FullLTO` conflicts with `ThinLTO`",
    ),
    "two optimisation levels without a profile": (
        "build /src O2;Os.",
        "p.g4:1:15: error: `Os` conflicts with `O2`",
    ),
    "unknown option of a build": ("build /src O9.", "p.g4:1:12: error: unknown option `O9`"),
    "option of a build twice": ("build /src O3;O3.", "p.g4:1:15: error: `O3` is given twice"),
    "a profile for a build": (
        "build /src /p.profdata O2.",
        "p.g4:1:24: error: `build` takes at most 2 operands, found 3",
    ),
    "a build as a profile": (
        "build /src.\nrecomp /src build.",
        "p.g4:2:13: error: `build` is an image, not a profile",
    ),
    "option twice": ("recomp /src /p O2;O2.", "p.g4:1:19: error: `O2` is given twice"),
    "metric twice": ("eval /a file;file.", "p.g4:1:14: error: `file` is given twice"),
    "nothing to evaluate": ("eval - file.", "p.g4:1:1: error: `eval` needs at least one image"),
    "nothing to merge": ("merge.", "p.g4:1:1: error: `merge` needs at least one profile"),
    "too few weights": (
        "merge /a;/b 1.",
        "p.g4:1:13: error: expected one weight per profile, found 1 for 2",
    ),
    "a merge of two algorithms": (
        "profile /src pgo rand kbench.\nprofile /src autofdo rand kbench.\nmerge /a;profile.\n"
        "merge merge;profile2.",
        "p.g4:4:13: error: `profile2` is a profile of `autofdo`, and `merge` of `pgo`",
    ),
    "a merge of stacks": (
        "opt /src autofdo+propeller rand kbench.\nmerge opt.",
        "p.g4:2:7: error: profiles of `autofdo+propeller` cannot be merged",
    ),
    "a merge by another toolchain": (
        "set toolchain gcc.\nprofile /src gcc-pgo rand kbench.\nset toolchain clang.\n"
        "merge profile;/b.",
        "p.g4:4:7: error: `gcc-pgo` needs gcc, and the toolchain is `clang`",
    ),
    "a merge of layouts": (
        "profile /src propeller rand kbench.\nmerge profile.profdata;/b.",
        "p.g4:2:7: error: profiles of `propeller` cannot be merged: each fits one build only",
    ),
    "weight of nothing": ("merge /a;/b 1;0.0.", "p.g4:1:15: error: invalid weight `0.0`"),
    "negative weight": ("merge /a -1.", "p.g4:1:10: error: invalid weight `-1`"),
    "unknown setting": ("set sead 1.", "p.g4:1:5: error: unknown setting `sead`"),
    "unknown arch": ("set arch x86_64.", "p.g4:1:10: error: unknown arch `x86_64`"),
    "unknown config": ("set config slim+andriod.", "p.g4:1:17: error: unknown config `andriod`"),
    "half a config": ("set config slim+.", "p.g4:1:12: error: invalid config `slim+`"),
    "unknown package": ("set package dbe.", "p.g4:1:13: error: unknown format of packages `dbe`"),
    "package without a file": (
        "set package bootimg:.",
        "p.g4:1:13: error: invalid package `bootimg:`",
    ),
    "package of a file": ("set package deb:./x.", "p.g4:1:17: error: `deb` takes no file"),
    "unknown toolchain": ("set toolchain clnag.", "p.g4:1:15: error: unknown toolchain `clnag`"),
    "a toolchain that is only a directory": (
        "set toolchain ./llvm.",
        "p.g4:1:15: error: unknown toolchain `./llvm`",
    ),
    "a version of a toolchain in a directory": (
        "set toolchain clang-22:./llvm.",
        "p.g4:1:15: error: unknown toolchain `clang-22`",
    ),
    "a toolchain without its directory": (
        "set toolchain clang:.",
        "p.g4:1:15: error: invalid toolchain `clang:`",
    ),
    "an algorithm that a directory's toolchain does not support": (
        "set toolchain gcc:./gcc-14.\nopt /src pgo rand kbench.",
        "p.g4:2:10: error: `pgo` needs clang, and the toolchain is `gcc:./gcc-14`",
    ),
    "a toolchain that builds no kernels for the architecture": (
        "set arch arm.\nbuild /src.",
        "p.g4:2:7: error: `clang` does not build kernels for arm",
    ),
    "another version of one that builds none": (
        "set arch arm.\nset toolchain clang-22.\nbuild /src.",
        "p.g4:3:7: error: `clang-22` does not build kernels for arm",
    ),
    "an algorithm that is newer than the toolchain": (
        "set toolchain clang-16.\nopt /src autofdo rand kbench.",
        "p.g4:2:10: error: `autofdo` needs `clang-19` or later, and the toolchain is `clang-16`",
    ),
    "a toolchain that is too old": (
        "set toolchain clang-13.",
        "p.g4:1:15: error: unknown toolchain `clang-13`",
    ),
    "unknown device": ("set device quemu.", "p.g4:1:12: error: unknown device `quemu`"),
    "seed of words": ("set seed lucky.", "p.g4:1:10: error: invalid seed `lucky`"),
    "endless seed": (
        f"set seed {'9' * 5000}.",
        f"p.g4:1:10: error: invalid seed `{'9' * 59}…`",
    ),
    "no repetitions": ("set repetitions 0.", "p.g4:1:17: error: invalid repetitions `0`"),
    "no actions": ("set actions 0.", "p.g4:1:13: error: invalid actions `0`"),
    "budget without a unit": ("set budget 90.", "p.g4:1:12: error: invalid budget `90`"),
    "name with a blank": (
        'set name "a b". opt /src pgo rand.',
        "p.g4:1:10: error: invalid name `a b`",
    ),
    "name that no file can have": (
        f"set name {'a' * 300}. opt /src pgo rand.",
        f"p.g4:1:10: error: invalid name `{'a' * 59}…`",
    ),
    "unknown image": (OPT + "eval plain;op file.", "p.g4:2:12: error: unknown image `op`"),
    "unknown profile": (OPT + "recomp /src opts.", "p.g4:2:13: error: unknown profile `opts`"),
    "image made later": (
        "eval opt file.\n" + OPT,
        "p.g4:1:6: error: `opt` is not made by an earlier statement",
    ),
    "profile as image": (
        "profile /src pgo rand.\neval profile file.",
        "p.g4:2:6: error: `profile` is a profile, not an image",
    ),
    "image as profile": (
        "recomp /src /p.\nmerge recomp.",
        "p.g4:2:7: error: `recomp` is an image, not a profile",
    ),
    "plain without a kernel": (
        "eval plain file.",
        "p.g4:1:6: error: `plain` needs an earlier statement that names a kernel",
    ),
    "plain as profile": (
        OPT + "merge plain.",
        "p.g4:2:7: error: `plain` is an image, not a profile",
    ),
    "plain as a name": (
        "set name plain. opt /src pgo rand.",
        "p.g4:1:10: error: `plain` is the name of the unoptimised image",
    ),
    "a name twice": (
        "set name a. opt /s pgo rand. set name a. opt /s pgo rand.",
        "p.g4:1:39: error: another result is already called `a`",
    ),
    "a name for nothing": (
        "set name a.",
        "p.g4:1:10: error: the name `a` is not used: no statement follows",
    ),
    "a name for eval": (
        "set name a. eval /x.",
        "p.g4:1:10: error: the name `a` is not used: `eval` makes no named result",
    ),
    "unknown goal": ("goal geomen 8.\neval /a;/b.", "p.g4:1:6: error: unknown goal `geomen`"),
    "goal in an unknown metric": (
        "goal worst -1 kernel_instrs.\neval /a;/b.",
        "p.g4:1:15: error: unknown metric `kernel_instrs`",
    ),
    "goal in a metric of eval": (
        "goal worst -1 syscall.\neval /a;/b.",
        "p.g4:1:15: error: unknown metric `syscall`",
    ),
    "goal in a metric twice": (
        "goal worst -1 guest_time;guest_time.\neval /a;/b.",
        "p.g4:1:26: error: `guest_time` is given twice",
    ),
    "goal without a bound": (
        "goal worst.\neval /a;/b.",
        "p.g4:1:1: error: `goal` is missing its bound",
    ),
    "bound of words": ("goal worst none.\neval /a;/b.", "p.g4:1:12: error: invalid bound `none`"),
    "bound with a unit": (
        "goal worst 1%.\neval /a;/b.",
        "p.g4:1:12: error: invalid bound `1%`",
    ),
    "bound out of reach": (
        "goal geomean 100.\neval /a;/b.",
        "p.g4:1:14: error: invalid bound `100`",
    ),
    "text of nothing": (
        OPT + "goal text -100.\neval plain;opt.",
        "p.g4:2:11: error: invalid bound `-100`",
    ),
    "text in a metric": (
        OPT + "goal text 2 guest_time.\neval plain;opt.",
        "p.g4:2:13: error: `text` is a size, which takes no metric",
    ),
    "text of a file": (
        OPT + "goal text 2.\neval plain;opt;/x.img.",
        "p.g4:3:16: error: `/x.img` is a file, whose text has no known size for the goal `text`",
    ),
    "goal of an unknown group": (
        "goal geomean:pip 8.\neval /a;/b.",
        "p.g4:1:14: error: unknown metric `pip`",
    ),
    "goal of no group": (
        "goal worst: 8.\neval /a;/b.",
        "p.g4:1:6: error: `worst:` is missing its group of cases",
    ),
    "group of a size": (
        "goal memory:pipe 8.\neval /a;/b.",
        "p.g4:1:13: error: `memory` is a size, which takes no group of cases",
    ),
    "metric of memory": (
        "goal memory 2 guest_time.\neval /a;/b.",
        "p.g4:1:15: error: `memory` is a size, which takes no metric",
    ),
    "goal of a group that is not measured": (
        "goal worst:binder -1.\neval /a;/b.",
        "p.g4:1:12: error: nothing measures `binder`: an `eval` below does not name it",
    ),
    "goal after eval": (
        "eval /a;/b.\ngoal worst -1.",
        "p.g4:2:1: error: no `eval` uses this goal: none that compares images follows",
    ),
    "goal for one image": (
        "goal worst -1.\neval /a.",
        "p.g4:1:1: error: no `eval` uses this goal: none that compares images follows",
    ),
    "goal over a goal": (
        "goal worst -1.\ngoal worst -2 kernel_instructions.\neval /a;/b.",
        "p.g4:1:1: error: no `eval` uses this goal: another bound follows first",
    ),
    "goal in modelled events without a core": (
        "goal worst -1 guest_time;kernel_cycles.\neval /a;/b.\nset core zen4.",
        "p.g4:1:26: error: nothing measures `kernel_cycles`: no core is modelled",
    ),
    "goal in a metric that no case prints": (
        "goal geomean 8 guest_time;latency.\neval /a;/b pipe;file.",
        "p.g4:1:27: error: nothing measures `latency`: no case of the `eval` below prints its "
        "figures",
    ),
    "goal in a metric that no case prints by default": (
        "goal worst -1 latency.\neval /a;/b.",
        "p.g4:1:15: error: nothing measures `latency`: no case of the `eval` below prints its "
        "figures",
    ),
    "goal in a metric that no case of its group prints": (
        "goal worst:ipc -1 time_per_byte.\neval /a;/b ipc;pipe.",
        "p.g4:1:19: error: nothing measures `time_per_byte`: no case of `ipc` prints its figures",
    ),
    "goal in a metric that an app does not print": (
        "goal worst:./app.toml -1 latency.\neval /a;/b ./app.toml;network.",
        "p.g4:1:26: error: nothing measures `latency`: no case of `./app.toml` prints its figures",
    ),
    "goal in a metric that its architecture does not have": (
        "eval /a;/b.\nset arch arm64.\ngoal geomean 8 kernel_work.\neval /a;/b.",
        "p.g4:3:16: error: nothing measures `kernel_work` on arm64",
    ),
    "goal for controls that nothing measures": (
        "goal memory 5.\ngoal geomean:compute 5.\neval /a;/b pipe.",
        "p.g4:2:14: error: nothing measures `compute`: an `eval` below does not name it",
    ),
    "goal for controls alone": (
        "goal geomean:compute 5.\ngoal memory 5.\neval /a;/b compute.",
        "p.g4:1:1: error: nothing is measured for this goal: every case of `compute` is a control, "
        "which kernels do not change",
    ),
    "an app without programs for the architecture": (
        "set arch arm64.\nopt /src pgo rand kbench;jni:2.",
        "p.g4:2:26: error: `jni` has no programs for arm64",
    ),
    "a metric without programs for the architecture": (
        "set arch arm64.\neval /a;/b pipe;jni.",
        "p.g4:2:17: error: `jni` has no programs for arm64",
    ),
    "unknown case": (
        "compare pipe-5 unix-4 ratio.\neval /a ipc.",
        "p.g4:1:9: error: unknown case `pipe-5`",
    ),
    "case of another suite": (
        "compare ipc/pipe-4 pages/unix-4 ratio.\neval /a ipc;pages.",
        "p.g4:1:20: error: unknown case `pages/unix-4`",
    ),
    "case against itself": (
        "compare pipe-4 ipc/pipe-4 ratio.\neval /a ipc.",
        "p.g4:1:16: error: `ipc/pipe-4` is compared with itself",
    ),
    "unknown way to compare": (
        "compare pipe-4 unix-4 quotient.\neval /a ipc.",
        "p.g4:1:23: error: unknown way `quotient` to compare",
    ),
    "comparison by nothing": (
        "compare pipe-4 unix-4.\neval /a ipc.",
        "p.g4:1:1: error: `compare` is missing its way",
    ),
    "ratio of an event": (
        "compare pipe-4 unix-4 ratio:cycles.\nset core zen4.\neval /a ipc.",
        "p.g4:1:23: error: `ratio` takes no event",
    ),
    "per event of nothing": (
        "compare walk-4k walk-2m per-event:.\nset core zen4.\neval /a pages.",
        "p.g4:1:25: error: `per-event` is missing its event",
    ),
    "per event without a colon": (
        "compare walk-4k walk-2m per-event.\nset core zen4.\neval /a pages.",
        "p.g4:1:25: error: `per-event` is missing its event",
    ),
    "unknown event": (
        "compare walk-4k walk-2m per-event:tlb_miss.\nset core zen4.\neval /a pages.",
        "p.g4:1:35: error: unknown metric `tlb_miss`",
    ),
    "event that costs itself": (
        "set core zen4.\ncompare walk-4k walk-2m per-event:cycles cycles.\neval /a pages.",
        "p.g4:2:42: error: `cycles` is the event, which costs one of itself",
    ),
    "comparison in an unknown metric": (
        "compare pipe-4 unix-4 ratio kernel_instructions.\neval /a ipc.",
        "p.g4:1:29: error: unknown metric `kernel_instructions`",
    ),
    "comparison in a metric twice": (
        "compare pipe-4 unix-4 ratio instructions;instructions.\neval /a ipc.",
        "p.g4:1:42: error: `instructions` is given twice",
    ),
    "comparison in modelled events without a core": (
        "compare pipe-4 unix-4 ratio instructions;dtlb_misses.\neval /a ipc.",
        "p.g4:1:42: error: nothing measures `dtlb_misses`: no core is modelled",
    ),
    "cost of a modelled event without a core": (
        "compare walk-4k walk-2m per-event:dtlb_misses.\neval /a pages.",
        "p.g4:1:35: error: nothing measures `dtlb_misses`: no core is modelled",
    ),
    "cost in cycles without a core": (
        "compare walk-4k walk-2m per-event:taken_branches.\neval /a pages.",
        "p.g4:1:25: error: nothing measures `cycles`: no core is modelled",
    ),
    "comparison of cases that eval leaves out": (
        "compare pipe-4 pipe128 ratio.\neval /a ipc.",
        "p.g4:1:16: error: nothing measures `pipe128`: an `eval` below does not name `pipe`",
    ),
    "comparison after eval": (
        "eval /a ipc.\ncompare pipe-4 unix-4 ratio.",
        "p.g4:2:1: error: no `eval` uses this comparison: none follows",
    ),
    "a name over a name": (
        "set name a. set name b. opt /s pgo rand.",
        "p.g4:1:10: error: the name `a` is not used: another name follows",
    ),
}


@pytest.mark.parametrize(("text", "headline"), CASES.values(), ids=CASES)
def test_a_wrong_program_gives_exactly_one_error(text: str, headline: str) -> None:
    assert headlines(text) == [headline]
