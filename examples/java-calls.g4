# What calls from Java through JNI cost on a kernel, over Unix sockets, and how much of that is
# marshalling: `mepof run examples/java-calls.g4` (docs/suites/jni.md). With `set config suites.` also
# over binder.

set seed 1.
set repetitions 1.

build debian:linux-source-6.12.
eval plain jni.
