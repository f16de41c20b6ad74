# Train a kernel on a web server and its clients: examples/web-app/app.toml says what they are and do
# (docs/apps.md). The packages are downloaded, not installed.

set config slim.
set seed 1.

opt debian:linux-source-6.12 pgo rand ./examples/web-app/app.toml O2.

# Its own actions, and cases that it was not trained on.
eval plain.img;opt.img ./examples/web-app/app.toml;syscall;overhead;proc;pipe;file.
