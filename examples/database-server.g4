# Train a kernel on PostgreSQL and pgbench: examples/postgres-app/app.toml says what they do
# (docs/apps.md). The packages are downloaded, not installed.

set config slim.
set seed 1.

opt debian:linux-source-6.12 pgo rand ./examples/postgres-app/app.toml O2.

# Its own actions, and cases that it was not trained on.
eval plain.img;opt.img ./examples/postgres-app/app.toml;syscall;overhead;proc;pipe;file.
