# Train a kernel on a program of your own: examples/sqlite-app/app.toml says what it is and what it
# does (docs/apps.md). It needs the shell of SQLite: apt-get install sqlite3

set config slim.
set seed 1.

# On average three of four actions are the program's, and one is kbench's.
opt debian:linux-source-6.12 pgo rand ./examples/sqlite-app/app.toml:3;kbench:1 O2.

# Its actions, and the cases of kbench.
eval plain.img;opt.img ./examples/sqlite-app/app.toml;syscall;overhead;proc;pipe;file.
